"""What makes a folder a store, and paths in it: names are checked, and no symbolic link leads out of it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mesascope.records._files import RecordError, UnreadableError, prepare_output, unreadable
from mesascope.records._folder_lock import folder_lock
from mesascope.records._sealed import read_sealed, write_sealed

from ._models import RUN_ID, STUDY_NAME

RECORD, TRAJECTORY = "run.json", "trajectory.nc"
"""The files of a run that has ended: what was found, and its labelled arrays, if it has some."""
LARGEST_INTEGER = 2**63 - 1
"""Of the index; times after the year 2262 are greater, in nanoseconds."""
_REMOVED = ".removed"
_WAIT = 10.0  # seconds for another process that makes the same store
STORE, _FORMAT = "store.json", "mesascope.store/1"


class _StoreFile(BaseModel, frozen=True, extra="forbid"):
    """The identity is unique, and stays the same when the folder is moved."""

    identity: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


# What is written like the address of a database: scheme:/…, …://…, user:password@…, keywords of libpq.
_like_an_address = re.compile(
    r"\s*([a-z][\w+.-]+:/|(postgres|postgresql|sqlite)[\w+]*(:|//)|(//)?[^/]*:[^/]*@|.*://"
    r"|(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|options)\s*=)",
    re.IGNORECASE | re.DOTALL,
).match
_MAX_PATH = 4095  # bytes


def store_folder(given: str | os.PathLike[str]) -> Path:
    """The folder that a user names.

    Raises:
        RecordError: it is rather meant as an address, which may hold a password: the message repeats no part of it.
    """
    text = os.fspath(given)
    if not isinstance(text, str):
        raise TypeError(f"the store's name must be text or a path, got {type(given).__name__}")
    if _like_an_address(text):
        raise RecordError(
            "the store's name looks like the address of a database and is none (it is not repeated here: it may hold a "
            "password); write postgresql://USER@HOST:PORT/DATABASE, or ./NAME for a folder of this name"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RecordError(
            f"the store's name {text!r} is not valid UTF-8, which its index is; choose another"
        ) from None
    if len(os.fsencode(text)) > _MAX_PATH:
        raise RecordError(f"the store's name has {len(text)} letters; a path has at most {_MAX_PATH}")
    return Path(text)


def identity_of(folder: Path) -> str:
    """The identity of the store in a folder.

    Raises:
        RecordError: it is not a store, or its file is damaged.
    """
    file = folder / STORE
    if not exists(file):
        raise RecordError(f"{folder} is not a store of runs; `mesascope sweep` makes one, or check the path")
    try:
        return read_sealed(file, _FORMAT, _StoreFile).identity
    except UnreadableError:
        raise
    except RecordError as error:
        what = str(error).rpartition(";")[0]
        raise RecordError(
            f"{what}; remove it, and an index that lies elsewhere, and give the sweep again: the runs beside it stay"
        ) from error


def make_store(folder: Path) -> None:
    """Make the folder a store, unless it is one.

    Raises:
        RecordError: it cannot be made or written to, or holds other things.
    """
    file = folder / STORE
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
    """Refuse a folder that holds other things than a store whose `store.json` was lost."""
    others = (
        name
        for name in os.listdir(folder)
        if not (name.startswith(".") or name == "lost+found" or _is_of_a_store(folder / name))
    )
    if other := min(others, default=""):
        raise RecordError(f"{folder} holds {other!r} and is not a store; name a new or an empty folder")


def _is_of_a_store(path: Path) -> bool:
    """Whether a file or folder is one that stores have, with nothing else in it."""
    if path.name.startswith("index.sqlite"):
        return path.is_file()
    held = {"runs": "[0-9a-f]{2}", "studies": r".*\.json", "drivers": r".*\.json"}.get(path.name)
    return held is not None and path.is_dir() and all(re.fullmatch(held, name) for name in os.listdir(path))


def run_folder(root: Path, run: str) -> Path:
    """The folder of a run, whether or not it is there.

    Raises:
        ValueError: `run` is not an id.
        RecordError: it is, or is in, a symbolic link.
    """
    if not re.fullmatch(RUN_ID, run):
        raise ValueError(f"run id {run!r}: an id has 32 hexadecimal digits; `mesascope runs list` shows them")
    folder = root / "runs" / run[:2] / run
    refuse_links(folder, folder.parent, folder.parent.parent)
    return folder


def study_file(root: Path, name: str) -> Path:
    """The file of a study, whether or not it is there.

    Raises:
        ValueError: `name` cannot be one.
        RecordError: it is, or is in, a symbolic link.
    """
    if not re.fullmatch(STUDY_NAME, name):
        raise ValueError(f"study name {name!r}: use lower-case letters, digits, '.', '_' and '-'")
    file = root / "studies" / f"{name}.json"
    refuse_links(file.parent)
    return file


def refuse_links(*paths: Path) -> None:
    """Refuse symbolic links in place of the store's own folders and files.

    Raises:
        UnreadableError: the system does not say.
        RecordError: one of them is a link.
    """
    for path in paths:
        try:
            is_link = path.is_symlink()
        except OSError as error:
            raise unreadable(path, error, "check the path") from error
        if is_link:
            raise RecordError(f"{path} is a symbolic link; a store follows none: put the folder itself there")


def links_outwards(root: Path, folder: Path) -> list[Path]:
    """The symbolic links in a folder of the store that lead out of the store."""
    inside = root.resolve()
    found = []
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(at, name)
            where = os.path.realpath(path)  # `Path.resolve` refuses links in a circle
            if path.is_symlink() and not Path(where).is_relative_to(inside):
                found.append(path)
    return sorted(found)


def throw_away(root: Path, folder: Path) -> None:
    """Remove the folder of a run: first renamed, then deleted. Needs no space on the disk.

    Raises:
        RecordError: it holds a symbolic link that leads out of the store, or cannot be removed.
    """
    for link in links_outwards(root, folder):
        raise RecordError(f"{link} is a symbolic link that leads out of the store; remove it, then try again")
    target = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_REMOVED}")
    try:
        os.rename(folder, target)
    except FileNotFoundError:
        return  # another process has removed it
    except OSError as error:
        raise RecordError(f"{folder} cannot be removed ({error.strerror}); check its permissions") from error
    shutil.rmtree(target, ignore_errors=True)  # follows no link; what is left is deleted by `empty_trash`


def empty_trash(root: Path) -> None:
    """Delete folders that killed processes have renamed but not deleted."""
    refuse_links(root / "runs")
    for target in (root / "runs").glob(f"*/.*{_REMOVED}"):
        refuse_links(target.parent)
        shutil.rmtree(target, ignore_errors=True)
