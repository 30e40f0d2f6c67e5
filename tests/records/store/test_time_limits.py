"""A PostgreSQL that is gone, hangs or is locked by others: reported within a time limit, and entered by the next command."""

import os
import signal
import socket
import time

import pytest
from sqlalchemy import text

from mesascope.records import RecordError, open_store
from mesascope.records.store import _time_limits
from mesascope.records.store._engine import reading, writing
from mesascope.records.store._problems import problems


@pytest.fixture
def store(folders, postgresql):
    with open_store(folders.root, postgresql) as opened:
        yield opened


def test_a_server_that_never_answers_is_given_up(folders):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(RecordError, match=r"timeout expired; check address, user") as caught:
            open_store(
                folders.root, f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2"
            )
        assert 1 < time.monotonic() - began < 8  # the address says 2 s, not our 10
        assert "\n" not in str(caught.value)


def test_a_server_that_hangs_is_given_up_and_the_index_is_brought_up_to_date_later(store, made, monkeypatch):
    monkeypatch.setattr(_time_limits.LimitedConnection, "answer", 0.3)
    began, backend = time.monotonic(), None
    try:
        with (
            pytest.raises(RecordError, match=r"has not answered for 0.3 s; see whether the server is well"),
            writing(store._engine) as connection,
        ):
            backend = connection.execute(text("SELECT pg_backend_pid()")).scalar()
            os.kill(backend, signal.SIGSTOP)
            run = made.compute(store.folders, 1)
            connection.execute(text("SELECT 1"))
        assert time.monotonic() - began < 5
    finally:
        os.kill(backend, signal.SIGCONT)
    assert store.folders.run(run).status == "done" and problems(store.folders) == []
    assert store.count() == 0
    store.refresh()
    assert store.count(["status=done"]) == 1 and store.verify() == []


def test_a_connection_that_was_lost_is_made_anew(store, made):
    with pytest.raises(RecordError, match="terminating connection"), reading(store._engine) as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    store.enter([made.compute(store.folders, 1)])
    assert store.count() == 1


def test_waiting_too_long_for_a_writer_or_a_statement_is_reported(
    store, folders, postgresql, made, monkeypatch
):
    monkeypatch.setattr(_time_limits, "_LOCK", 0.2)
    run = made.compute(folders, 1)
    with (
        open_store(folders.root, postgresql) as other,
        writing(store._engine),
        pytest.raises(RecordError, match="another process has been writing for a minute; try again"),
    ):
        other.enter([run])
    monkeypatch.setattr(_time_limits, "_STATEMENT", 0.2)
    with (
        pytest.raises(RecordError, match="statement timeout; see whether the server is well"),
        reading(store._engine) as connection,
    ):
        connection.execute(text("SELECT pg_sleep(5)"))


def test_who_holds_the_index_and_hangs_is_given_up_by_the_server(
    store, folders, postgresql, made, monkeypatch
):
    monkeypatch.setattr(_time_limits, "_IDLE", 0.2)
    with (
        pytest.raises(RecordError, match="idle-in-transaction timeout"),
        writing(store._engine) as connection,
    ):
        time.sleep(0.6)
        connection.execute(text("SELECT 1"))
    with open_store(folders.root, postgresql) as other:
        other.enter([made.compute(folders, 1)])
        assert other.count() == 1
