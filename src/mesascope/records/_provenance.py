"""The provenance of a record: versions, commit, platform, time, and a digest of the code."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from ._identity import LIBRARIES, PACKAGE, code_digest, package_version

_STORAGE = ("xarray", "netCDF4", "pydantic")


class Provenance(BaseModel, frozen=True, extra="forbid"):
    """Where, when and with what a result was computed.

    Attributes:
        mesascope: version of this package.
        code: `code_version()`, the digest of the sources and of the numerical libraries' versions.
        python: version of the interpreter.
        platform: operating system and machine.
        processor: how many cores of which processor.
        packages: versions of the libraries that compute and store, by name.
        commit: git commit of the checkout that the package was imported from; None outside one.
        dirty: whether the package's files differ from that commit; None outside a checkout.
        created: UTC time, ISO 8601 to the second.
    """

    mesascope: str
    code: str
    python: str
    platform: str
    processor: str = ""  # in records from before it was recorded
    packages: dict[str, str]
    commit: str | None
    dirty: bool | None
    created: str


def _git(*arguments: str) -> str | None:
    # GIT_DIR and similar variables may name another repository (inside a hook, say).
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            env=environment,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git, no repository, or one that git refuses to read
    return done.stdout.strip()


@cache
def _processor() -> str:
    names = re.findall(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    name = names[0].strip() if names else platform.processor() or platform.machine()
    return f"{os.cpu_count()} × {name}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not Linux


@cache
def _checkout() -> tuple[str | None, bool | None]:
    # An environment is often inside a repository that does not track this package.
    if not _git("ls-files", "--error-unmatch", "--", "__init__.py"):
        return None, None
    status = _git("status", "--porcelain", "--", ".")
    return _git("rev-parse", "HEAD"), None if status is None else bool(status)


@cache
def code_version() -> str:
    """Digest of the package's own sources and of the numerical libraries' versions.

    An edited checkout or an upgraded library changes it, so that results cached under it are computed again.
    It is computed once per process, from the files as they are at the first call.

    Returns:
        `"<version>+<first 16 hexadecimal digits of a SHA-256>"`.
    """
    return code_digest(PACKAGE, PACKAGE.rglob("*.py"))


def provenance() -> Provenance:
    """The provenance of what this process computes now."""
    commit, dirty = _checkout()
    found = {name: package_version(name) for name in LIBRARIES + _STORAGE}
    return Provenance(
        mesascope=package_version("mesascope") or "unknown",
        code=code_version(),
        python=platform.python_version(),
        platform=platform.platform(),
        processor=_processor(),
        packages={name: number for name, number in found.items() if number is not None},
        commit=commit,
        dirty=dirty,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
