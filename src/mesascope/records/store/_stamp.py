"""Which store an index belongs to, and its version; one that is damaged or of another version is built again."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, inspect, literal, select, text

from mesascope.records._files import RecordError, share
from mesascope.records._folder_lock import folder_lock

from ._engine import reading, writing
from ._folders import RunFolders
from ._paths import STORE as STORE_FILE
from ._schema import STORE, TABLES, VERSION
from ._sync import refresh
from ._tally import begin_tally
from ._urls import DamagedIndexError, damaged, shown

_WAIT = 60.0  # seconds for another process that builds the index again
_Answer = TypeVar("_Answer")


class Stamp(NamedTuple):
    """What an index says about itself.

    Attributes:
        version: of its tables; 1 where it does not say.
        identity: of its store.
        folder: where the store was when it was last opened.
    """

    version: int
    identity: str
    folder: str


def read_stamp(connection: Connection) -> Stamp | None:
    """What the index says about itself; None if it was never written.

    Raises:
        DamagedIndexError: it belongs to no store.
    """
    tables = inspect(connection)
    if not tables.has_table(STORE.name):
        return None
    columns = {column["name"] for column in tables.get_columns(STORE.name)}
    version = STORE.c.version if "version" in columns else literal(1)
    row = connection.execute(select(version, STORE.c.identity, STORE.c.folder)).first()
    if row is None:
        raise damaged(connection.engine.url, "it names no store")
    number, identity, folder = row
    is_identity = isinstance(identity, str) and re.fullmatch("[0-9a-f]{32}", identity)
    if not (isinstance(number, int) and is_identity and isinstance(folder, str)):
        raise damaged(connection.engine.url, f"its store is {identity!r} at {folder!r}, version {number!r}")
    return Stamp(number, identity, folder)


def prepare(engine: Engine, folders: RunFolders) -> None:
    """Make the tables of an index, or build those of another version again, empty; `refresh` then fills them.

    Raises:
        DamagedIndexError: the index is damaged, or belongs to another store.
    """
    with reading(engine) as connection:
        stamp = read_stamp(connection)
    if stamp is None or stamp.version != VERSION:
        with writing(engine) as connection:
            stamp = read_stamp(connection)  # another process may have been faster
            _refuse_other_store(engine, folders, stamp)
            if stamp is None or stamp.version != VERSION:
                stamp = _make_tables(connection, folders, stamp)
    _refuse_other_store(engine, folders, stamp)
    if stamp.folder == str(folders.root) or _is_mounted_at(stamp.folder, folders):
        return
    if _is_store(stamp.folder, folders.identity) and not _lies_in(folders.root, engine):
        raise DamagedIndexError(
            f"index {shown(engine.url)} is of the store at {stamp.folder}, of which {folders.root} is a copy",
            "give every store a database or a schema of its own",
        )
    with writing(engine) as connection:  # the store was moved, or copied together with its index
        connection.execute(STORE.update().values(folder=str(folders.root)))


def _is_mounted_at(folder: str, folders: RunFolders) -> bool:
    """Whether the store itself, not a copy, is also found at that folder: what is put into one is then in the other."""
    try:
        with tempfile.NamedTemporaryFile(dir=folders.root, prefix=".probe-") as probe:
            return Path(folder, Path(probe.name).name).exists()
    except OSError:  # nothing can be put there
        return _is_store(folder, folders.identity)


def _lies_in(root: Path, engine: Engine) -> bool:
    """Whether the database of an index is a file in a folder."""
    file = engine.url.database
    return engine.dialect.name == "sqlite" and bool(file) and Path(str(file)).absolute().parent == root


def _refuse_other_store(engine: Engine, folders: RunFolders, stamp: Stamp | None) -> None:
    if stamp is None or stamp.identity == folders.identity:
        return
    if stamp.folder == str(folders.root):
        raise DamagedIndexError(
            f"index {shown(engine.url)} is of a store that was here before, not of the one whose {STORE_FILE} was made since",
            "remove the index, and the next command builds it again",
        )
    raise DamagedIndexError(
        f"index {shown(engine.url)} is of the store at {stamp.folder}, not of {folders.root}",
        "give every store a database or a schema of its own",
    )


def _make_tables(connection: Connection, folders: RunFolders, before: Stamp | None) -> Stamp:
    """Make the tables, in the transaction of the caller, in place of those of another version."""
    if before is not None:
        warnings.warn(
            f"index {shown(connection.engine.url)} is of another version of mesascope (tables {before.version}, here "
            f"{VERSION}): it is built again from the folders of the runs",
            stacklevel=2,
        )
        TABLES.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))  # of version 1
    TABLES.create_all(connection, checkfirst=False)
    stamp = Stamp(VERSION, folders.identity, str(folders.root))
    connection.execute(STORE.insert(), [stamp._asdict()])
    begin_tally(connection)
    return stamp


def _is_store(folder: str, identity: str) -> bool:
    """Whether a store of this identity is at that folder."""
    try:
        return RunFolders(folder).identity == identity
    except RecordError:
        return False


# A damaged index


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
        if engine.url.database != str(index_file(folders)) or not folders.are_there():
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
    except FileExistsError:
        if file.exists() and not file.is_file():
            raise RecordError(
                f"{file} is in the place of the index and is not a file; move it away"
            ) from None
        return
    except OSError:
        return  # SQLite says why it cannot be
    share(file)
