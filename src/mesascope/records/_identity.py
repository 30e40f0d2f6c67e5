"""Whether a stored result is the result of a given computation: one digest, one list of libraries, one comparison."""

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ._plain import canonical_json

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package."""
LIBRARIES = (
    "jax",
    "jaxlib",
    "equinox",
    "diffrax",
    "optax",
    "optimistix",
    "lineax",
    "numpy",
    "scipy",
    "python-flint",
)
"""The libraries that numbers pass through: another version may give another last digit."""


def identity(kind: str, meaning: Any, code: str) -> str:
    """Digest of everything that a result depends on: equal exactly where computing again gives the same result.

    Args:
        kind: which computation: `claim`, or the kind of a run.
        meaning: what is computed: its settings, anything that `plain` takes.
        code: `code_digest` of what computes it.

    Returns:
        64 hexadecimal digits: SHA-256 of the canonical JSON of the three.

    Raises:
        TypeError: `meaning` holds something that a record cannot.
    """
    parts = {"kind": kind, "spec": meaning, "code": code}
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def code_digest(package: Path, files: Iterable[Path]) -> str:
    """Digest of source files as they are on the disk, and of the versions of `LIBRARIES`.

    Args:
        package: the folder of the package.
        files: files in it, in any order.

    Returns:
        `"<version>+<first 16 hexadecimal digits of a SHA-256>"`.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    for name in LIBRARIES:
        digest.update(f"{name}=={package_version(name)}\n".encode())
    return f"{package_version('mesascope')}+{digest.hexdigest()[:16]}"


def package_version(name: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def difference(there: Any, here: Any, field: str = "") -> tuple[str, Any, Any] | None:
    """The first field in which what is stored differs from what is requested, with both values; None where they are equal.

    Tables are compared field by field, unless their `kind` differs; a field that is absent is None.
    """
    if not (isinstance(there, dict) and isinstance(here, dict) and there.get("kind") == here.get("kind")):
        return None if there == here else (field, there, here)
    for name in [*here, *(name for name in there if name not in here)]:
        found = difference(there.get(name), here.get(name), f"{field}.{name}".removeprefix("."))
        if found:
            return found
    return None
