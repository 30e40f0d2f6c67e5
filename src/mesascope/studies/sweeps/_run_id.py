"""The id of a run, from its kind, the meaning of its specification, the files that it reads, and the code that computes."""

import hashlib
import os
import stat
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mesascope.records import (
    PACKAGE,
    PlannedRun,
    RecordError,
    canonical_json,
    checkpoint_files,
    code_digest,
    identity,
)
from mesascope.specs import PLUGIN_MODULE, Component, Spec, known_kinds

from .._identify import IdentifySpec
from .._identify_models import CheckpointSpec, FunctionSpec
from ._axes import Place

# Rooms that start, store and show runs. Numbers depend on all other rooms, and on these files of this one.
_WITHOUT_NUMBERS = ("cli", "lab", "papers", "records", "report")
_SWEEPS = ("studies", "sweeps")
_OF_SWEEPS = ("_compute.py", "_isolation.py", "_worker.py")
_MAX_EXACT = 2**53  # floats below it that are integers are exactly as written
_DIGITS = 32


class InputFileError(RecordError):
    """A file that a specification names cannot be read.

    Attributes:
        place: the field that names it.
    """

    def __init__(self, what: str, place: Place) -> None:
        super().__init__(what)
        self.place = place


def planned_run(kind: str, spec: Spec) -> PlannedRun:
    """Return the plan of a run, with its id.

    The id is the first 32 hexadecimal digits of the `identity` of kind, specification and code. It is computed from the meaning
    of the specification: a field that is left out equals its default, and 1, 1.0 and "1" are equal, as are "1/2" and "0.5".
    A float 0.1 and the exact "0.1" are two numbers. Files and modules of functions count by their content, not by their path.

    Raises:
        InputFileError: a file that the specification reads cannot be read.
    """
    read: list[str] = []
    meaning = _plain(spec, partial(_input, read))
    if learners := _foreign_learners(spec):
        meaning["learners of other packages"] = learners
        read += [digest for digests in learners.values() for digest in digests]
    code = _own_code()
    if read:
        code += f"+{hashlib.sha256(canonical_json(read).encode()).hexdigest()[:16]}"
    return PlannedRun(
        id=identity(kind, meaning, _own_code())[:_DIGITS], kind=kind, spec=canonical(spec), code=code
    )


def canonical(value: Any) -> Any:
    """A specification as plain JSON, equal numbers written alike; reading it again gives the same specification."""
    return _plain(value, lambda one, _: os.path.abspath(one) if isinstance(one, Path) else None)


def _plain(value: Any, other: Callable[[Any, Place], Any], place: Place = ()) -> Any:
    """A specification as plain JSON; `other` replaces files and the like, and returns None for everything else."""
    replaced = other(value, place)
    if replaced is not None:
        return replaced
    match value:
        case Spec():
            fields = type(value).model_fields  # without private attributes
            return {name: _plain(getattr(value, name), other, (*place, name)) for name in fields}
        case Component():
            named = value.specification()
            parts = {name: getattr(value, name) for name in named if name != "kind"}
            source = other(type(value), place)
            return {
                **({"kind": value.kind} if "kind" in named else {}),
                **(source or {}),
                **{name: _plain(one, other, (*place, name)) for name, one in parts.items()},
            }
        case dict():
            return {str(key): _plain(one, other, (*place, str(key))) for key, one in value.items()}
        case tuple() | list():
            return [_plain(one, other, (*place, i)) for i, one in enumerate(value)]
        case Fraction():
            return int(value) if value.denominator == 1 else str(value)
        case float() if value.is_integer() and abs(value) < _MAX_EXACT:
            return int(value)
        case complex():
            return {"re": _plain(value.real, other, place), "im": _plain(value.imag, other, place)}
        case _:
            return value.tolist() if hasattr(value, "tolist") else value


def _input(read: list[str], value: Any, place: Place) -> Any:
    """The digests of the contents of a file, or of the files that a value reads; None for anything else."""
    try:
        match value:
            case CheckpointSpec():
                contents = [_digest_of(file) for file in _checkpoint_files(value.path)]
                found = {"kind": value.kind, "path": contents}
            case FunctionSpec():
                contents = [_digest_of(module_file(value.name))]
                found = {"kind": value.kind, "name": value.name, "source": contents}
            case Path():
                contents = [_digest_of(value)]
                found = {"content": contents, "suffix": value.suffix}
            case type():
                contents = [_digest_of(file) for file in _sources(value)]
                found = {"source": contents} if contents else {}
            case _:
                return None
    except RecordError as error:
        field = () if isinstance(value, Path) else ("path" if isinstance(value, CheckpointSpec) else "name",)
        raise InputFileError(str(error), (*place, *field)) from error
    read += contents
    return found


def _sources(cls: type) -> list[Path]:
    """The source files of the installed package, or of the single module, that declares a class.

    None for classes of this package, and for those of plugins: a specification names their files.
    """
    top = cls.__module__.partition(".")[0]
    if top == PACKAGE.name or top.startswith(PLUGIN_MODULE):
        return []
    module = import_module(top)
    if folders := getattr(module, "__path__", ()):
        return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    file = getattr(module, "__file__", None)  # an interactive session has none
    return [Path(file)] if file else []


def _foreign_learners(spec: Spec) -> dict[str, list[str]]:
    """The digests of the sources of the learners of other packages that an identification compares with."""
    if not isinstance(spec, IdentifySpec):
        return {}
    known = known_kinds("learner")
    sources = {name: _sources(known[name]) for name in spec.learners or known}
    return {name: [_digest_of(file) for file in files] for name, files in sources.items() if files}


def _checkpoint_files(path: Path) -> list[Path]:
    """The files that a trained model is loaded from: the checkpoint, the last one of a run, and its specification."""
    folder = path if path.is_dir() else path.parent
    last = next(reversed(checkpoint_files(path).values()), path) if path.is_dir() else path
    return [file for file in (last, folder / "spec.json") if file.exists()]


def module_file(name: str) -> Path:
    """The source file of the module of a function.

    Raises:
        RecordError: there is none.
    """
    module = name.partition(":")[0]
    try:
        found = find_spec(module)
    except (Exception, SystemExit) as error:  # find_spec imports the packages that contain the module
        raise RecordError(f"{name}: {module} cannot be imported ({error}); check the name") from error
    if found is None or found.origin is None or not Path(found.origin).is_file():
        raise RecordError(
            f"{name}: there is no file of module {module}; put {module}.py beside the specification"
        )
    return Path(found.origin)


def _digest_of(file: Path) -> str:
    try:
        found = os.stat(file)
        if stat.S_ISFIFO(found.st_mode):
            raise RecordError(f"{file} is a named pipe, which may stay empty; put the file itself there")
        return _content(os.path.abspath(file), found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise RecordError(f"{file} cannot be read ({error.strerror}); check the path") from error


@lru_cache(maxsize=4096)
def _content(file: str, changed: int, size: int) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _own_code() -> str:
    """Computed once per process, from the files at the first call."""
    return code_digest(PACKAGE, computing_files(PACKAGE))


def computing_files(package: Path) -> list[Path]:
    """The source files of the package on which the numbers of runs depend."""
    rooms = (room for room in package.iterdir() if room.is_dir() and room.name not in _WITHOUT_NUMBERS)
    files = (path for room in rooms for path in room.rglob("*.py"))
    sweeps = package.joinpath(*_SWEEPS)
    return [path for path in files if path.parent != sweeps or path.name in _OF_SWEEPS]
