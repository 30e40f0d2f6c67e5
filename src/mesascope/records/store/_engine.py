"""Connections to the index: SQLite and PostgreSQL, read by many and written by one at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.pool import NullPool

from ._rows import row_checksum, to_json
from ._urls import damaged, plain_errors

_POOL = f"{NullPool.__module__}.{NullPool.__name__}"  # the logger of the pool
_WAIT = 60  # seconds for another writer
_LOCK = 0x6D657361  # "mesa": the advisory lock for writing on PostgreSQL


def make_engine(url: URL) -> Engine:
    """An engine for this URL; nothing is connected yet."""
    common: dict[str, Any] = {"json_serializer": to_json, "hide_parameters": True}
    if url.get_backend_name() != "sqlite":
        from ._time_limits import connect

        # pre-ping: a server that was restarted is connected to again
        engine = create_engine(url, pool_size=2, pool_pre_ping=True, **common)
        event.listen(engine, "do_connect", connect)
        return engine
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": _WAIT}, **common)
    logging.getLogger(_POOL).addFilter(_is_no_interrupt)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Whether a message of SQLAlchemy is of an error; it would print the traceback of an interrupt that it raises, too."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or issubclass(kind, Exception)


def _set_up(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin by `_begin`, not where the driver chooses
    connection.create_function("row_checksum", -1, row_checksum, deterministic=True)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(
        "PRAGMA synchronous = NORMAL"
    )  # after a loss of power the index is brought up to the folders
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _to_wal(connection)


def _to_wal(connection: Any) -> None:
    """Switch to write-ahead logging, which SQLite refuses at once while others open the file, whatever the timeout."""
    import sqlite3

    end = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _begin(connection: Connection) -> None:
    # IMMEDIATE: of two transactions that read first and write later, one would fail
    writing = connection.get_execution_options().get("mesascope_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads one consistent state of the index."""
    with plain_errors(engine.url), engine.connect() as connection, connection.begin():
        _limit(connection)
        yield connection


def _limit(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        from ._time_limits import limit_transaction

        limit_transaction(connection)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """The only transaction that may write at this time."""
    with (
        plain_errors(engine.url),
        engine.connect().execution_options(mesascope_writing=True) as connection,
        connection.begin(),
    ):
        _limit(connection)
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


def check(engine: Engine) -> None:
    """Let SQLite check the whole file.

    Raises:
        DamagedIndexError: it is damaged.
    """
    if engine.dialect.name == "sqlite":
        with reading(engine) as connection:
            refuse_damage(connection, "1")


def refuse_damage(connection: Connection, what: str) -> None:
    """Let SQLite check a table with its search trees, or the whole file up to a number of faults.

    Raises:
        DamagedIndexError: it is damaged.
    """
    said = str(connection.exec_driver_sql(f"PRAGMA integrity_check({what})").scalar())
    if said != "ok":
        raise damaged(connection.engine.url, " ".join(said.split()))
