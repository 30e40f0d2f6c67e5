"""Modules of functions that are to be identified: those that lie in the folders of this study, as they lie there now.

A process may live longer than what stands in a file, and two studies may have modules of one name.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

_INSTALLED = ("site-packages", "dist-packages")
_OURS = __name__.partition(".")[0]


class _Kept(NamedTuple):
    """What was imported from folders, and how its files were at that time."""

    folders: tuple[str, ...]
    modules: dict[str, ModuleType]
    files: dict[str, tuple[int, int]]


_kept = _Kept((), {}, {})
_searched: tuple[str, ...] = ()
_installed: dict[str, tuple[int, int]] = {}


@contextmanager
def importable(search: Sequence[str]) -> Iterator[None]:
    """Let modules be imported from these folders, while the block runs.

    They are imported once, and anew after one of their files has changed. Those that the program itself has imported from
    there are neither used nor touched.
    """
    folders = tuple(os.path.abspath(folder) for folder in search)
    if not folders:
        yield
        return
    global _searched
    path, bytecode, before = list(sys.path), sys.dont_write_bytecode, _searched
    theirs, _searched = _taken_out(folders), folders
    sys.path[:0] = folders
    sys.dont_write_bytecode = True  # it is told from its source by whole seconds
    _put_back(folders)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        _keep(folders)
        sys.modules.update(theirs)
        sys.path[:], sys.dont_write_bytecode, _searched = path, bytecode, before


def was_edited(file: os.PathLike[str]) -> bool:
    """Whether the file of a module that lies elsewhere, in a package that is installed, has changed since this was first asked.

    Such a module stays imported as it was: the process must be started anew.
    """
    place = os.path.abspath(file)
    if any(place.startswith(folder + os.sep) for folder in _searched):
        return False
    return _installed.setdefault(place, _now(place)) != _now(place)


def _taken_out(folders: tuple[str, ...]) -> dict[str, ModuleType]:
    """The modules that were imported from these folders, no longer imported."""
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


def _keep(folders: tuple[str, ...]) -> None:
    global _kept
    modules = _taken_out(folders)
    known = _kept.files if _kept.folders == folders else {}
    files = {file: known.get(file) or _now(file) for file in _files(modules)}
    _kept = _Kept(folders, modules, files)


def _put_back(folders: tuple[str, ...]) -> None:
    global _kept
    if _kept.folders == folders and all(_now(file) == then for file, then in _kept.files.items()):
        sys.modules.update(_kept.modules)
    else:
        _kept = _Kept((), {}, {})


def _files(modules: dict[str, ModuleType]) -> Iterator[str]:
    for module in modules.values():
        file = getattr(module, "__file__", None)
        if file:
            yield file


def _now(file: str) -> tuple[int, int]:
    try:
        told = os.stat(file)
    except OSError:
        return (0, 0)
    return told.st_mtime_ns, told.st_size
