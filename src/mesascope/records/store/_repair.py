"""An index whose file is damaged is built again: it holds nothing that the folders of the runs do not."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine

from mesascope.records._files import share
from mesascope.records._folder_lock import folder_lock

from ._folders import RunFolders
from ._stamp import prepare
from ._sync import refresh
from ._urls import DamagedIndexError

_WAIT = 60.0  # seconds for another process that builds the index again
_Answer = TypeVar("_Answer")


def index_file(folders: RunFolders) -> Path:
    """The file of a store's own index."""
    return folders.root / "index.sqlite"


def ask(folders: RunFolders, engine: Engine, question: Callable[..., _Answer], *arguments: Any) -> _Answer:
    """`question(engine, *arguments)`; where the store's own index is damaged, it is built again first.

    Raises:
        DamagedIndexError: the damaged index is elsewhere: only the store's own file may be replaced.
    """
    try:
        return question(engine, *arguments)
    except DamagedIndexError:
        if engine.url.database != str(index_file(folders)):
            raise
    with folder_lock(folders.root, "index", wait=_WAIT):
        try:
            return question(engine, *arguments)  # another process may have built it again meanwhile
        except DamagedIndexError as error:
            warnings.warn(f"{error.what}; it is built again from the folders of the runs", stacklevel=4)
            _replace(index_file(folders))
            prepare(engine, folders)
            refresh(engine, folders)
            return question(engine, *arguments)


def _replace(file: Path) -> None:
    for part in ("", "-wal", "-shm"):
        Path(f"{file}{part}").unlink(missing_ok=True)
    make_file(file)


def make_file(file: Path) -> None:
    """Make the file of an index: SQLite gives its log the same rights, and a group that shares the folder needs both."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError:
        return  # it is there; or SQLite says why it cannot be
    share(file)
