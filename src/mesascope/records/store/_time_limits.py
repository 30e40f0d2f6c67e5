"""Time limits for PostgreSQL, also where the server hangs or the network is gone."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, text

_LOCK = 60  # seconds that a statement waits for another writer
_STATEMENT = _LOCK + 30  # seconds after which the server cancels a statement
_ANSWER = _STATEMENT + 10  # seconds without an answer after which the connection is closed
_IDLE = 600  # seconds after which the server ends a transaction that asks nothing


# What it logs of lost connections is said by the error; without a handler Python would print it, too.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed where no answer comes: a server that hangs enforces no limits."""

    answer = float(_ANSWER)  # seconds

    def wait(self, *arguments: Any, **options: Any) -> Any:
        """Wait for the end of one exchange with the server; all of them pass through here.

        Raises:
            psycopg.OperationalError: it has not come for `answer` seconds.
        """
        with _cut(self.fileno(), self.answer) as is_cut:
            try:
                return super().wait(*arguments, **options)
            except psycopg.Error:
                if not is_cut.is_set():
                    raise
        raise psycopg.OperationalError(f"the server has not answered for {self.answer:g} s")


@contextmanager
def _cut(descriptor: int, seconds: float) -> Iterator[threading.Event]:
    """Shut the socket down if the block lasts longer; the event says whether it did."""
    is_cut = threading.Event()

    def shut() -> None:
        is_cut.set()
        with socket.socket(fileno=os.dup(descriptor)) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, shut)
    timer.daemon = True
    timer.start()
    try:
        yield is_cut
    finally:
        timer.cancel()


def connect(_dialect: object, _record: object, arguments: Any, options: Any) -> LimitedConnection:
    """Open a connection; what SQLAlchemy calls for one."""
    return LimitedConnection.connect(*arguments, **{"connect_timeout": 10, **options})


def limit_transaction(connection: Connection) -> None:
    """Set the limits of the server for this transaction alone: a pool may lend the connection to others."""
    limits = {
        "lock_timeout": _LOCK,
        "statement_timeout": _STATEMENT,
        "idle_in_transaction_session_timeout": _IDLE,
    }
    chosen = ", ".join(f"set_config('{name}', '{seconds}s', true)" for name, seconds in limits.items())
    connection.execute(text(f"SELECT {chosen}"))
