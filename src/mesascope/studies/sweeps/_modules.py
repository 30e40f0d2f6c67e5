"""Modules of functions that are to be identified: imported from the folders of the study, as their files are now.

A file may change while a worker runs, and two studies may have modules of the same name.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import PathEntryFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
)
from types import ModuleType
from typing import NamedTuple

from mesascope.specs import SourceAlone

_INSTALLED = ("site-packages", "dist-packages")
_OURS = __name__.partition(".")[0]


class _Imported(NamedTuple):
    """The modules that were imported from folders, and the state of their files at that time."""

    folders: tuple[str, ...]
    modules: dict[str, ModuleType]
    files: dict[str, tuple[int, int]]


_find_sources = FileFinder.path_hook(
    (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceAlone, SOURCE_SUFFIXES)
)

_cached = _Imported((), {}, {})
_searched: tuple[str, ...] = ()
_installed: dict[str, tuple[int, int]] = {}


@contextmanager
def importable(search: Sequence[str]) -> Iterator[None]:
    """Let modules be imported from these folders, while the block runs.

    They are imported once, and again after one of their files has changed. Modules that the program itself has imported from
    there are neither used nor changed.
    """
    folders = tuple(os.path.abspath(folder) for folder in search)
    if not folders:
        yield
        return
    global _searched
    path, hooks, before = list(sys.path), list(sys.path_hooks), _searched
    theirs, _searched = _taken_out(folders), folders
    sys.path[:0] = folders
    sys.path_hooks.insert(0, _finder)
    _restore(folders)
    _forget_finders(folders)
    try:
        yield
    finally:
        _cache(folders)
        sys.modules.update(theirs)
        sys.path[:], sys.path_hooks[:], _searched = path, hooks, before
        _forget_finders(folders)


def _finder(folder: str) -> PathEntryFinder:
    if _is_in(folder, _searched) and not any(name in folder for name in _INSTALLED):
        return _find_sources(folder)
    raise ImportError(f"{folder} is not a folder of the study", path=folder)


def _forget_finders(folders: tuple[str, ...]) -> None:
    for known in [one for one in sys.path_importer_cache if _is_in(one, folders)]:
        sys.path_importer_cache.pop(known, None)
    importlib.invalidate_caches()


def _is_in(place: str, folders: tuple[str, ...]) -> bool:
    return any(place == folder or place.startswith(folder + os.sep) for folder in folders)


def was_edited(file: os.PathLike[str]) -> bool:
    """Whether the file of a module in an installed package has changed since the first call.

    Such a module stays imported as it was: the process must be started again.
    """
    place = os.path.abspath(file)
    if _is_in(place, _searched):
        return False
    return _installed.setdefault(place, _state(place)) != _state(place)


def _taken_out(folders: tuple[str, ...]) -> dict[str, ModuleType]:
    """Remove the modules that were imported from these folders from `sys.modules`, and return them."""
    there = {name: _lies_in(name, folders) for name in list(sys.modules) if "." not in name}
    names = [name for name in list(sys.modules) if there.get(name.partition(".")[0])]
    return {name: sys.modules.pop(name) for name in names}


def _lies_in(name: str, folders: tuple[str, ...]) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if name == _OURS or spec is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location else [])]
    above = (os.path.dirname(os.path.abspath(one)) for one in places)
    return any(one in folders and os.path.basename(one) not in _INSTALLED for one in above)


def _cache(folders: tuple[str, ...]) -> None:
    global _cached
    modules = _taken_out(folders)
    known = _cached.files if _cached.folders == folders else {}
    files = {file: known.get(file) or _state(file) for file in _files(modules)}
    _cached = _Imported(folders, modules, files)


def _restore(folders: tuple[str, ...]) -> None:
    global _cached
    if _cached.folders == folders and all(_state(file) == then for file, then in _cached.files.items()):
        sys.modules.update(_cached.modules)
    else:
        _cached = _Imported((), {}, {})


def _files(modules: dict[str, ModuleType]) -> Iterator[str]:
    for module in modules.values():
        file = getattr(module, "__file__", None)
        if file:
            yield file


def _state(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size
