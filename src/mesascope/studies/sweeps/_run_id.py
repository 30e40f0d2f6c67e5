"""What makes two runs the same: kind, meaning of the specification, files that it reads, and the code that computes."""

import hashlib
import os
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mesascope.records import PlannedRun, RecordError, canonical_json

from .._base import Spec
from .._identify_models import CheckpointSpec, FunctionSpec

_PACKAGE = Path(__file__).resolve().parents[2]
# What a run passes through. The rest (this room, records, papers, report, cli) starts, stores and shows it.
_ROOMS = ("core", "processes", "models", "learners", "objectives", "theory", "dynamics", "probes", "studies")
_NOT = _PACKAGE / "studies" / "sweeps"
_COMPUTE = _NOT / "_compute.py"
_LIBRARIES = (
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
_WHOLE = 2**53  # floats below it that are integers are exactly what was written
_DIGITS = 32


def planned_run(kind: str, spec: Spec) -> PlannedRun:
    """What is to be computed, and its id.

    The id is the SHA-256 of the canonical JSON of kind, `canonical(spec)` and `code_of(spec)`, its first 32 hexadecimal
    digits. It is computed from what the specification means: fields that were left out and fields given with their default
    are the same, and so are 1, 1.0 and "1", or "1/2" and "0.5". A float 0.1 and the exact "0.1" are two numbers.

    Raises:
        RecordError: a file that the specification reads cannot be read.
    """
    content, code = canonical(spec), code_of(spec)
    text = canonical_json({"kind": kind, "spec": content, "code": code})
    return PlannedRun(
        id=hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], kind=kind, spec=content, code=code
    )


def canonical(value: Any) -> Any:
    """A specification as plain JSON, equal numbers written alike; reading it again gives the same specification."""
    match value:
        case Spec():
            return {name: canonical(one) for name, one in value}
        case dict():
            return {str(key): canonical(one) for key, one in value.items()}
        case tuple() | list():
            return [canonical(one) for one in value]
        case Path():
            return os.path.abspath(value)
        case Fraction():
            return int(value) if value.denominator == 1 else str(value)
        case float() if value.is_integer() and abs(value) < _WHOLE:
            return int(value)
        case _:
            return value


def code_of(spec: Spec) -> str:
    """The version of everything beside the specification that decides the numbers.

    That is the sources of the rooms that compute, the numerical libraries, and, where the specification names some, the
    bytes of its files of samples, of its checkpoints, and of the module of its function (not what that imports).

    Raises:
        RecordError: such a file cannot be read.
    """
    read = sorted(_inputs(spec))
    if not read:
        return _own_code()
    digest = hashlib.sha256("\n".join(read).encode()).hexdigest()
    return f"{_own_code()}+{digest[:16]}"


def _inputs(value: Any) -> Iterator[str]:
    match value:
        case CheckpointSpec():
            yield from map(_digest_of, _checkpoints(value.path))
        case FunctionSpec():
            yield _digest_of(_module_file(value.name))
        case Spec():
            for _, one in value:
                yield from _inputs(one)
        case tuple() | list():
            for one in value:
                yield from _inputs(one)
        case Path():
            yield _digest_of(value)


def _checkpoints(path: Path) -> list[Path]:
    """The files that a trained model is loaded from: the checkpoint, and the specification of its run."""
    folder = path if path.is_dir() else path.parent
    files = (
        [*folder.glob("step-*.checkpoint"), folder / "spec.json"]
        if path.is_dir()
        else [path, folder / "spec.json"]
    )
    return [file for file in files if file.exists()]


def _module_file(name: str) -> Path:
    module = name.partition(":")[0]
    try:
        found = find_spec(module)
    except (Exception, SystemExit) as error:  # looking for a module imports the packages that it lies in
        raise RecordError(f"{name}: {module} cannot be imported ({error}); check the name") from error
    if found is None or found.origin is None or not Path(found.origin).is_file():
        raise RecordError(
            f"{name}: there is no file of module {module}; put {module}.py beside the specification"
        )
    return Path(found.origin)


def _digest_of(file: Path) -> str:
    try:
        told = os.stat(file)
        return _content(os.path.abspath(file), told.st_mtime_ns, told.st_size)
    except OSError as error:
        raise RecordError(f"{file} cannot be read ({error.strerror}); check the path") from error


@lru_cache(maxsize=4096)
def _content(file: str, changed: int, size: int) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _own_code() -> str:
    """Taken once per process, from the files as they lie at the first call."""
    digest = hashlib.sha256()
    files = (path for room in _ROOMS for path in (_PACKAGE / room).rglob("*.py"))
    for path in sorted(path for path in files if _NOT not in path.parents or path == _COMPUTE):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    for name in _LIBRARIES:
        digest.update(f"{name}=={_version(name)}\n".encode())
    return f"{_version('mesascope')}+{digest.hexdigest()[:16]}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
