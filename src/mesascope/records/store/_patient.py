"""Connections to PostgreSQL on which nobody waits for ever, also where the server hangs or the network is gone."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, text

from ._engine import PATIENCE

_STATEMENT = PATIENCE + 30  # seconds after which the server gives a statement up
_ANSWER = _STATEMENT + 10  # seconds after which the server is given up
_IDLE = 600  # seconds after which the server gives up whoever holds a transaction and has gone


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is cut where no answer comes: the limits that a server keeps are of no use when it hangs."""

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
    """Shut the socket down if the block lasts longer than that; say whether it did."""
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


def connect_patiently(_dialect: object, _record: object, arguments: Any, options: Any) -> PatientConnection:
    """Open a connection; what SQLAlchemy calls for one."""
    return PatientConnection.connect(*arguments, **{"connect_timeout": 10, **options})


def limit_transaction(connection: Connection) -> None:
    """Let the server give up what lasts too long, in this transaction alone: a pool may lend the connection to others."""
    limits = {
        "lock_timeout": PATIENCE,
        "statement_timeout": _STATEMENT,
        "idle_in_transaction_session_timeout": _IDLE,
    }
    chosen = ", ".join(f"set_config('{name}', '{seconds}s', true)" for name, seconds in limits.items())
    connection.execute(text(f"SELECT {chosen}"))
