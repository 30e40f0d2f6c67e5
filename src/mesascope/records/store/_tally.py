"""Number and checksums of the rows that were written: changes of an SQLite file by anyone else show before it answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import BigInteger, ColumnElement, Connection, Engine, Table, func, select, true

from ._engine import reading, refuse_damage
from ._schema import POINTS, RUNS, STUDIES, TALLY
from ._urls import damaged

_COUNTED = (RUNS, STUDIES, POINTS)  # outcomes have their checksums in the rows of runs
_checked: WeakKeyDictionary[Engine, list[Any]] = WeakKeyDictionary()


@contextmanager
def counted(connection: Connection, table: Table, rows: ColumnElement[bool]) -> Iterator[None]:
    """Around every change of the rows for which a condition holds: their number and their checksums are kept."""
    if connection.dialect.name != "sqlite":
        yield
        return
    number, total = _tally(connection, table, rows)
    yield
    then, total_then = _tally(connection, table, rows)
    more = {"rows": TALLY.c.rows + then - number, "total": TALLY.c.total + total_then - total}
    connection.execute(TALLY.update().where(TALLY.c.name == table.name).values(more))


@contextmanager
def checked(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads an index of which every row, and every entry of a search tree, is what was written.

    SQLite answers from its trees where they have the columns: it compares them with the rows first. Files that have the times
    and sizes that they had at the last check of this engine are not checked again.

    Raises:
        DamagedIndexError: a row was changed, added or removed by something else, or a tree differs. PostgreSQL, whose
            server decides who may do so, is not checked.
    """
    files = _files(engine)  # before the transaction begins: what is written after it shows at the next check
    with reading(engine) as connection:
        if files and _checked.get(engine) != files:
            kept = {name: (rows, total) for name, rows, total in connection.execute(select(TALLY))}
            if kept != {table.name: _tally(connection, table, true()) for table in _COUNTED}:
                raise damaged(engine.url, "its rows are not those that were written")
            for table in _COUNTED:
                refuse_damage(connection, table.name)
            _checked[engine] = files
        yield connection


def begin_tally(connection: Connection) -> None:
    """Of tables that are empty."""
    connection.execute(TALLY.insert(), [{"name": table.name, "rows": 0, "total": 0} for table in _COUNTED])


def _tally(connection: Connection, table: Table, rows: ColumnElement[bool]) -> tuple[int, int]:
    checksum = func.row_checksum(*table.columns, type_=BigInteger)  # of `make_engine`
    chosen = select(func.count(), func.coalesce(func.sum(checksum), 0)).select_from(table).where(rows)
    number, total = connection.execute(chosen).one()
    return number, total


def _files(engine: Engine) -> list[Any]:
    """Time, size and number of the files of an SQLite index; empty for PostgreSQL."""
    found: list[Any] = []
    for end in ("", "-wal") if engine.dialect.name == "sqlite" else ():
        try:
            at = os.stat(f"{engine.url.database}{end}")
        except OSError:
            found.append(None)
        else:
            found.append((at.st_mtime_ns, at.st_size, at.st_ino))
    return found
