"""Kinds from outside this package: files that a specification lists, and installed packages."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from contextlib import chdir, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from ._errors import SpecError, SpecTypeError, error_path, one_line, show, show_text
from ._plugin_errors import declared_at, described, message_of, raised_in
from ._registry import LOCK, Kind, is_ours, recorded_kinds, register
from ._source_alone import SourceAlone

GROUP = "mesascope"
"""The group of entry points by which installed packages declare kinds: modules that are imported before kinds are listed."""


_MAX_SHOWN = 300  # letters of a path
PLUGIN_MODULE = "mesascope_plugin_"
"""The module of a file is this and a digest of its content."""


@cache
def load_installed() -> None:
    """Import the modules that installed packages declare.

    Raises:
        ValueError: the module of a package cannot be imported, or a kind in it cannot be used.
    """
    for point in entry_points(group=GROUP):
        try:
            # standard output is for the results of commands
            with recorded_kinds(_check_examples), redirect_stdout(sys.stderr or StringIO()):
                point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist else point.value
            raise ValueError(
                f"the installed package {package}: {described(error)}; fix or remove it"
            ) from error


def load_plugin(file: Path) -> list[Kind]:
    """Import a Python file that declares kinds; a file of the same content is imported once, and registered again.

    Returns:
        The family, the name and the class of each kind.

    Raises:
        ValueError: it cannot be read, or raises an error.
    """
    try:
        if file.exists() and not file.is_file():
            raise ValueError(f"{_shown(file)} is not a file; give a Python file")
        source = file.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {_shown(file)}: {error.strerror}; check the path") from None
    name = f"{PLUGIN_MODULE}{hashlib.sha256(source).hexdigest()[:16]}"
    with LOCK:
        if name in _loaded:
            for kind in _loaded[name]:
                register(*kind)
        else:
            _loaded[name] = _executed(file, name)
        return _loaded[name]


def _shown(file: Path) -> str:
    text = one_line(str(file))
    return text if len(text) <= _MAX_SHOWN else show_text(text)


def _executed(file: Path, name: str) -> list[Kind]:
    """Execute a file as a module of this name; return the kinds that it declares."""
    if file.suffix != ".py":
        raise ValueError(f"{file} is not a Python file; its name must end in .py")
    loader = SourceAlone(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader)
    assert spec is not None  # it has a loader
    sys.modules[name] = module = module_from_spec(spec)
    try:
        # relative paths of the command and of later files start where it was called
        with recorded_kinds(_check_kinds) as kinds, chdir(os.curdir):
            loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        place = raised_in(str(file), error)
        if isinstance(error, SystemExit):
            raise ValueError(f"{place}: ends the program; remove its call of exit") from None
        if isinstance(error, ExampleError):
            raise ValueError(str(error)) from None
        if isinstance(error, KeyboardInterrupt) or (
            not isinstance(error, Exception) and is_ours(type(error))
        ):
            raise  # the user stops the command
        raise ValueError(f"{place}: {described(error)}") from error
    return [kind for kind in kinds if kind[2].__module__ == name]


def _check_kinds(kinds: list[Kind]) -> None:
    """Refuse a file that declares two kinds of one name, and check the example of each."""
    declared: dict[tuple[str, str], type[Any]] = {}
    for family, name, cls in kinds:
        if declared.setdefault((family, name), cls) is not cls:
            raise ExampleError(f"{declared_at(cls)}: the {family} '{name}' is declared twice; rename one")
    _check_examples(kinds)


def _check_examples(kinds: Iterable[Kind]) -> None:
    """Make the example of each kind, which checks its fields, their defaults and the example itself."""
    for family, name, cls in kinds:
        try:
            cls.example()
        except Exception as error:
            raise ExampleError(
                f"{declared_at(cls)}: no example of the {family} '{name}' can be made: {message_of(error)} "
                "(the decorator takes the values of fields that have no default)"
            ) from error


class ExampleError(ValueError):
    """A kind whose example cannot be made; the message begins with its file and line."""


_loaded: dict[str, list[Kind]] = {}
"""Module of a file → what it registered."""
_default_plugins: list[Path] = []


def set_default_plugins(files: Iterable[str]) -> None:
    """Load files; they are plugins of every specification from now on, besides those in its field `plugins`.

    Those of an earlier call are no longer.

    Raises:
        ValueError: as `load_plugin`, or a path is empty or not a path.
    """
    declared: dict[tuple[str, str], Path] = {}
    paths = list(map(_path, files))
    for file in paths:
        _load_beside(file, declared)
    _default_plugins[:] = [file.absolute() for file in paths]


def default_plugins() -> tuple[Path, ...]:
    """Return the files of `set_default_plugins`."""
    return tuple(_default_plugins)


def _load_beside(file: Path, declared: dict[tuple[str, str], Path]) -> None:
    """Load a file, and refuse one that declares a kind of another file; `declared` has the file of each kind."""
    for family, name, _ in load_plugin(file):
        other = declared.setdefault((family, name), file)
        if other != file:
            raise ValueError(f"{other} and {file} both declare the {family} '{name}'; rename one")


def _path(given: Any) -> Path:
    if not isinstance(given, str | Path) or not str(given).strip() or "\0" in str(given):
        raise SpecTypeError(f"must be the path of a Python file, got {show(given)}")
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise SpecError(f"no home folder is known for {show(given)}; write the whole path") from None


def _load(value: Any, info: ValidationInfo) -> tuple[Path, ...]:
    if not isinstance(value, list | tuple):
        raise SpecTypeError(f"must be a list of Python files, got {show(value)}")
    files, declared = list[Path](), dict[tuple[str, str], Path]()
    for i, one in enumerate(value):
        with error_path(i):
            file = Path((info.context or {}).get("folder", ".")).absolute() / _path(one)
            _load_beside(file, declared)
        files.append(file)
    for file in default_plugins():
        if file not in files:
            _load_beside(file, declared)
            files.append(file)
    return tuple(files)


Plugins: TypeAlias = Annotated[
    tuple[Path, ...], PlainValidator(_load), PlainSerializer(lambda files: [str(file) for file in files])
]
"""Python files that declare kinds, with those of the command; a relative path starts at the folder of the specification."""
