"""A PostgreSQL that is gone, hangs or is locked by others: reported within a time limit, and entered by the next command."""

import os
import signal
import socket
import subprocess
import time
from functools import partial

import psutil
import pytest
from sqlalchemy import Engine, event, text

from mesascope.records import RecordError, StudyAxis, StudyPoint, StudyRecord, open_store
from mesascope.records.store import _time_limits
from mesascope.records.store._engine import reading, writing
from mesascope.records.store._problems import problems


@pytest.fixture
def store(folders, postgresql):
    with open_store(folders.root, postgresql) as opened:
        yield opened


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up(folders):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(RecordError, match=r"timeout expired; check address, user") as caught:
            open_store(
                folders.root, f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2"
            )
        assert 1 < time.monotonic() - began < 8  # the address says 2 s, not our 10
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up_and_the_index_is_brought_up_to_date_later(store, made, monkeypatch):
    monkeypatch.setattr(_time_limits.LimitedConnection, "answer", 0.3)
    began = backend = None
    try:
        with (
            pytest.raises(RecordError, match=r"has not answered for 0.3 s; see whether the server is well"),
            writing(store._engine) as connection,
        ):
            backend = connection.execute(text("SELECT pg_backend_pid()")).scalar()
            os.kill(backend, signal.SIGSTOP)
            run = made.compute(store.folders, 1)
            began = time.monotonic()
            connection.execute(text("SELECT 1"))
        assert time.monotonic() - began < 5  # the limit, and the end of a connection that does not answer
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


def _use(folders, url, made):
    """All that is done with an index."""
    for number in (1, 2):
        made.compute(folders, number)
    with open_store(folders.root, url) as store:
        run = made.compute(folders, 3)
        store.enter([run])
        axis = StudyAxis(name="seed", labels=(1, 2))
        points = tuple(StudyPoint(run=made.planned(k).id, place=(k - 1,)) for k in (1, 2))
        store.write_study(StudyRecord(name="both", kind="flow", spec={}, axes=(axis,), points=points))
        file = folders.folder(run) / "run.json"
        file.write_bytes(file.read_bytes()[:50])
        assert store.find(run).status == "unreadable" and store.count() == 3
        store.to_xarray("both")
        store.reindex()
        store.remove([run])
        store.remove_study("both")


def _end_connection(connection, server):
    server.psql(f"SELECT pg_terminate_backend({connection.dbapi_connection.info.backend_pid})")


def _kill_server(connection, server, number):
    """Kill the server with all its processes, and start it again."""
    postmaster = psutil.Process(server.get_pid())
    all_of_it = [postmaster, *postmaster.children(recursive=True)]
    postmaster.send_signal(number)
    _, alive = psutil.wait_procs(all_of_it, timeout=10)
    assert not alive
    server.ensure_postgres_running()
    _wait_until_it_answers(server)


def _wait_until_it_answers(server):
    """It first reads its log again, meanwhile it refuses connections: long where much else runs."""
    until = time.monotonic() + 60
    while True:
        try:
            server.psql("SELECT 1")
            return
        except subprocess.CalledProcessError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


# psycopg warns of cursors that could not be closed, since their connection was lost
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("end", "every"),
    [
        (_end_connection, 4),
        pytest.param(partial(_kill_server, number=signal.SIGKILL), 13, marks=pytest.mark.slow),
        pytest.param(partial(_kill_server, number=signal.SIGQUIT), 17, marks=pytest.mark.slow),
    ],
    ids=["connection", "kill -9", "immediate"],
)
def test_a_server_that_is_lost_at_any_statement(folders, made, server, postgresql, end, every):
    """One line without the password is all that is seen of it, and the next command finds all that the folders hold."""
    url = postgresql.replace("postgres:@", "postgres:hidden@")
    left, lost = 0, 0

    def count(connection, *_):
        nonlocal left
        left -= 1
        if left == 0:
            end(connection.connection, server)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        for left in range(every, 500, every):
            try:
                _use(folders, url, made)
            except RecordError as error:
                lost += 1
                assert "hidden" not in str(error) and "\n" not in str(error)
            if left > 0:  # all was done before this statement
                break
            with open_store(folders.root, url) as store:
                assert {row.id for row in store.rows()} == set(folders.ids())
                assert [one for one in store.verify() if "run.json is torn" not in one] == []
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    assert lost >= 40 // every


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


@pytest.mark.slow
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
