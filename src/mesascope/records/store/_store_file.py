"""What makes a folder a store: the file store.json, with an identity that no other store has."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import BaseModel

from mesascope.records._files import RecordError, prepare_output, unreadable
from mesascope.records._folder_lock import folder_lock
from mesascope.records._sealed import read_sealed, write_sealed
from mesascope.records._secrets import without_passwords

_WAIT = 10.0  # seconds for another process that makes the same store
_FILE, _FORMAT = "store.json", "mesascope.store/1"


class _StoreFile(BaseModel, frozen=True, extra="forbid"):
    """The identity is unique, and stays the same when the folder is moved."""

    identity: str


def identity_of(folder: Path, given: str | os.PathLike[str]) -> str:
    """The identity of the store in a folder.

    Args:
        folder: the folder.
        given: its name as the user gave it.

    Raises:
        RecordError: it is no store, or its file is damaged.
    """
    file = folder / _FILE
    if not exists(file):
        named = without_passwords(str(given))  # it may have been meant as a URL
        raise RecordError(f"{named} is no store of runs; `mesascope sweep` makes one, or check the path")
    return read_sealed(file, _FORMAT, _StoreFile).identity


def make_store(folder: Path) -> None:
    """Make the folder a store, unless it is one.

    Raises:
        RecordError: it cannot be made or written to, or holds other things.
    """
    file = folder / _FILE
    if exists(file):
        return
    prepare_output(folder)
    with folder_lock(folder, "store", wait=_WAIT):
        if not file.exists():
            _refuse_others(folder)
            write_sealed(file, _FORMAT, _StoreFile(identity=secrets.token_hex(16)))


def exists(file: Path) -> bool:
    """Whether a file is there.

    Raises:
        UnreadableError: the system does not say.
    """
    try:
        return file.exists()
    except OSError as error:
        raise unreadable(file, error, "check the path") from error


def _refuse_others(folder: Path) -> None:
    """Refuse a folder that holds other things."""
    others = (name for name in os.listdir(folder) if not name.startswith(".") and name != "lost+found")
    if other := min(others, default=""):
        raise RecordError(f"{folder} holds {other!r} and is no store; name a new or an empty folder")
