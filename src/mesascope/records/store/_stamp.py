"""Which store an index belongs to, and the version of its tables; tables of another version are built again."""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from sqlalchemy import Connection, Engine, inspect, literal, select, text

from mesascope.records._files import RecordError

from ._engine import reading, writing
from ._folders import RunFolders
from ._schema import STORE, TABLES, VERSION
from ._urls import DamagedIndexError, damaged, shown


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
    """What the index says about itself; None where there is none yet.

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
    if stamp.folder != str(folders.root) and not _is_store(stamp.folder, folders.identity):
        with writing(engine) as connection:
            connection.execute(STORE.update().values(folder=str(folders.root)))


def _refuse_other_store(engine: Engine, folders: RunFolders, stamp: Stamp | None) -> None:
    if stamp is not None and stamp.identity != folders.identity:
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
    return stamp


def _is_store(folder: str, identity: str) -> bool:
    """Whether this store is also found at that folder: mounted twice, not moved."""
    try:
        return RunFolders(folder).identity == identity
    except RecordError:
        return False
