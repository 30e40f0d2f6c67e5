"""Kinds from outside this package: files that a specification lists, and installed packages."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from ._errors import SpecTypeError, error_path, one_line, show
from ._registry import LOCK, recorded_kinds, register

GROUP = "mesascope"
"""The group of entry points by which installed packages declare kinds: modules that are imported before kinds are listed."""


PLUGIN_MODULE = "mesascope_plugin_"
"""The module of a file is this and a digest of its content."""


@cache
def load_installed() -> None:
    """Import the modules that installed packages declare.

    Raises:
        ImportError: the module of a package cannot be imported.
    """
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise ImportError(f"{package}: {one_line(str(error))}; fix or remove the package") from error


def load_plugin(file: Path) -> list[tuple[str, str, type[Any]]]:
    """Import a Python file that declares kinds; a file of the same content is imported once, and registered again.

    Returns:
        The family, the name and the class of each kind.

    Raises:
        ValueError: it cannot be read, or raises an error.
    """
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}; check the path") from None
    name = f"{PLUGIN_MODULE}{hashlib.sha256(source).hexdigest()[:16]}"
    with LOCK:
        if name in _loaded:
            for kind in _loaded[name]:
                register(*kind)
        else:
            _loaded[name] = _executed(file, name)
        return _loaded[name]


def _executed(file: Path, name: str) -> list[tuple[str, str, type[Any]]]:
    """Execute a file as a module of this name; return the kinds that it declares."""
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is not a Python file; its name must end in .py")
    sys.modules[name] = module = module_from_spec(spec)
    try:
        with recorded_kinds() as kinds:
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SystemExit):
            raise ValueError(f"{file}: ends the program; remove its call of exit") from None
        if not isinstance(error, Exception):
            raise
        raise ValueError(f"{file}: {type(error).__name__}: {one_line(str(error))}") from error
    return [kind for kind in kinds if kind[2].__module__ == name]


_loaded: dict[str, list[tuple[str, str, type[Any]]]] = {}
"""Module of a file → what it registered."""
_default_plugins: list[Path] = []


def set_default_plugins(files: Iterable[str]) -> None:
    """Load files; they become the plugins of every specification without the field `plugins`.

    Raises:
        ValueError: as `load_plugin`.
    """
    declared: dict[tuple[str, str], Path] = {}
    for file in map(Path, files):
        _load_beside(file, declared)
        _default_plugins.append(file.absolute())


def default_plugins() -> tuple[Path, ...]:
    """Return the files of `set_default_plugins`."""
    return tuple(_default_plugins)


def _load_beside(file: Path, declared: dict[tuple[str, str], Path]) -> None:
    """Load a file, and refuse one that declares a kind of another file; `declared` has the file of each kind."""
    for family, name, _ in load_plugin(file):
        other = declared.setdefault((family, name), file)
        if other != file:
            raise ValueError(f"{other} and {file} both declare the {family} '{name}'; rename one")


def _load(value: Any, info: ValidationInfo) -> tuple[Path, ...]:
    if not isinstance(value, list | tuple):
        raise SpecTypeError(f"must be a list of Python files, got {show(value)}")
    files, declared = [], dict[tuple[str, str], Path]()
    for i, one in enumerate(value):
        if not isinstance(one, str | Path) or not str(one).strip() or "\0" in str(one):
            raise SpecTypeError(f"must be the path of a Python file, got {show(one)}", i)
        file = Path((info.context or {}).get("folder", ".")) / one
        with error_path(i):
            _load_beside(file, declared)
        files.append(file.absolute())
    return tuple(files)


Plugins: TypeAlias = Annotated[
    tuple[Path, ...], PlainValidator(_load), PlainSerializer(lambda files: [str(file) for file in files])
]
"""Python files that declare kinds; a relative path starts at the folder of the specification."""
