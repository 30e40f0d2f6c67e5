"""What a store must survive: kills at any moment, full disks, many writers at once, and secrets in addresses."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from sqlalchemy import inspect, text

from mesascope.records import RecordError, RunFolders, open_store
from mesascope.records.store import _stamp
from mesascope.records.store._engine import reading
from mesascope.records.store._problems import problems
from mesascope.records.store._schema import VERSION

# MESASCOPE_KILLS=50 is what the store promises to survive; fewer in every run of the tests.
KILLS = int(os.environ.get("MESASCOPE_KILLS", "12"))


@pytest.mark.slow
def test_kills_at_any_moment_leave_no_torn_run(folders, made, forks):
    """Many writers, each killed at a random moment of planning, computing, entering or writing the study."""
    open_store(folders.root).close()
    moments = random.Random(7)
    interrupted = 0
    for attempt in range(KILLS):
        pid, _ = forks("background", "write_until_killed", folders.root, 1000 * attempt)
        first = folders.folder(made.planned(1000 * attempt).id)
        _wait((first / "run.json").exists if attempt % 2 else first.exists)  # its first run, or a later one
        time.sleep(moments.uniform(0, 0.06))
        os.kill(pid, signal.SIGKILL)
        _wait(partial(_ended, pid))
        for number in range(1000 * attempt, 1000 * attempt + 1000):
            run = made.planned(number).id
            if not folders.folder(run).exists():
                break
            record = folders.run(run)
            interrupted += record is None
            if record is not None:
                assert folders.trajectory(run).sizes["time"] == 1 + 997 * (number % 7)
            else:
                assert not (folders.folder(run) / "run.json").exists()
    assert problems(folders) == []
    forks("await", "nothing")
    with open_store(folders.root) as store:
        assert store.verify() == []
        assert (
            store.count(["status=done"])
            == sum(folders.run(run) is not None for run in folders.ids())
            >= KILLS / 5
        )
    assert interrupted >= KILLS / 10  # kills did fall into writing
    assert not list(folders.root.rglob("*.tmp"))
    # Whoever comes next computes what was cut short.
    left = [number for number in range(1000 * KILLS) if folders.is_planned(made.planned(number).id)][-1]
    made.compute(folders, left)
    assert problems(folders) == []


def _wait(until):
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.002)


def _ended(pid):
    """Whether a process has ended: it is the child of another, which may not have asked yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_removal_that_is_killed_is_finished_by_the_next_verify(folders, made, monkeypatch):
    run = made.compute(folders, 1)
    with open_store(folders.root) as store:
        store.refresh()
        with monkeypatch.context() as patched:
            patched.setattr("shutil.rmtree", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                store.remove([run])
        assert len(list(folders.root.glob("runs/*/*"))) == 1
        assert store.verify() == [] and store.count() == 0
        assert not list(folders.root.glob("runs/*/*"))


@pytest.mark.slow
def test_eight_processes_write_at_once(folders, made, forks, index):
    """All of them also make the index, which is not there yet."""
    address = index or "-"
    pids = [forks("background", "write_many", folders.root, address, 6 * k, 6)[0] for k in range(8)]
    _wait(lambda: all(map(_ended, pids)))
    with open_store(folders.root, index) as store:
        rows = store.rows()
        assert len(rows) == 48 and {row.id for row in rows} == {made.planned(k).id for k in range(48)}
        assert {row.status for row in rows} == {"done"}
        assert store.verify() == []


def test_two_writers_with_older_news_do_not_undo_what_is_done(folders, made, index):
    """One store saw the run planned; the other has entered it as done; entering again says what the folder says."""
    with open_store(folders.root, index) as one, open_store(folders.root, index) as two:
        folders.plan(made.planned(1))
        one.enter([made.planned(1).id])
        made.compute(folders, 1)
        two.enter([made.planned(1).id])
        one.enter([made.planned(1).id])
        assert [row.status for row in one.rows()] == ["done"]


@pytest.fixture(params=["limit", "disk"])
def small(request, tmp_path):
    """A store that takes no more than little: by a limit of the size of files, or on a small disk of its own."""
    place = tmp_path / "small"
    place.mkdir()
    if request.param == "limit":
        yield place, 60_000
        return
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=700k", "none", place],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    yield place, 0
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.slow
def test_a_full_disk_is_reported_and_leaves_the_store_whole(small, made, forks):
    place, limit = small
    folders = RunFolders.create(place)
    with open_store(place) as store:
        status, said = forks("await", "fill", place, limit)
        assert status == 0 and len(said) == 1
        assert "cannot" in said[0] and ("free space" in said[0] or "choose another" in said[0]), said
        assert problems(folders) == [] and len(folders.ids()) >= 1
        done = [run for run in folders.ids() if folders.run(run) is not None]
        while not _refreshed(
            store
        ):  # there was no room for the index either: runs are removed until there is
            folders.remove(done.pop())
        assert store.count(["status=done"]) == len(done) >= 1 and store.verify() == []


def _refreshed(store):
    try:
        store.refresh()
    except RecordError as error:
        assert "make room" in str(error) and "\n" not in str(error)
        return False
    return True


def test_only_databases_that_are_known(folders):
    for url, message in (
        ("mysql://host/db", "not supported; use postgresql"),
        ("sqlite://", "needs a file"),
        ("sqlite://folder/index.sqlite", "four slashes"),
        ("sqlite:////folder/index.sqlite?mode=ro", "nothing else"),
        ("sqlite:////nonexistent/folder/x.sqlite", "check that its folder is there"),
        ("", "cannot be read"),
    ):
        with pytest.raises(RecordError, match=message):
            open_store(folders.root, url)


def test_a_database_that_is_read_only_or_has_other_tables_is_reported(folders, made, postgresql, server):
    import psycopg

    with psycopg.connect(postgresql) as connection:
        connection.execute("CREATE TABLE runs (x int)")
    with pytest.raises(
        RecordError, match=r"already exists; its tables are not those of an index: give it an"
    ):
        open_store(folders.root, postgresql)
    with psycopg.connect(postgresql) as connection:
        connection.execute("DROP TABLE runs")
        connection.execute("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
    try:
        with pytest.raises(RecordError, match=r"read-only transaction; let this user read and write"):
            open_store(folders.root, postgresql)
    finally:
        server.psql("SET default_transaction_read_only = off; ALTER ROLE CURRENT_USER RESET ALL")
    with open_store(folders.root, postgresql) as store:
        store.enter([made.compute(folders, 1)])


def _make_older(store):
    """Leave the index as the first version made it: without a version, and with a table of its migrations."""
    with store._engine.begin() as connection:
        connection.execute(text("ALTER TABLE store DROP COLUMN version"))
        connection.execute(text("ALTER TABLE runs DROP COLUMN brief"))
        connection.execute(text("CREATE TABLE alembic_version (version_num text)"))


def _make_newer(store):
    with store._engine.begin() as connection:
        connection.execute(text("UPDATE store SET version = 9999"))
        connection.execute(text("ALTER TABLE runs ADD COLUMN note text"))


@pytest.mark.slow
@pytest.mark.parametrize(("change", "tables"), [(_make_older, 1), (_make_newer, 9999)])
def test_an_index_of_another_version_is_built_again(folders, made, index, change, tables):
    with open_store(folders.root, index) as store:
        store.enter([made.compute(folders, number) for number in range(3)])
        before = store.rows()
        change(store)
    with pytest.warns(
        UserWarning, match=rf"\(tables {tables}, here {VERSION}\): it is built again from the folders"
    ):
        store = open_store(folders.root, index)
    with store:
        assert store.rows() == before and len(before) == 3 and store.verify() == []
        with reading(store._engine) as connection:
            names = {column["name"] for column in inspect(connection).get_columns("runs")}
            assert "brief" in names and "note" not in names
            assert not inspect(connection).has_table("alembic_version")
    open_store(folders.root, index).close()  # without a warning


def test_what_is_built_again_is_whole_or_as_before(folders, made, index, monkeypatch):
    """Whoever dies while the tables are made leaves the tables of the other version."""
    with open_store(folders.root, index) as store:
        store.enter([made.compute(folders, 1)])
        _make_newer(store)
        monkeypatch.setattr(
            _stamp.TABLES, "create_all", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="is built again"):
            open_store(folders.root, index)
        with reading(store._engine) as connection:
            assert _stamp.read_stamp(connection).version == 9999
            assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 1


@pytest.mark.slow
@pytest.mark.parametrize("change", [_make_older, _make_newer])
def test_several_processes_open_an_index_of_another_version(folders, made, forks, index, change):
    with open_store(folders.root, index) as store:
        store.enter([made.compute(folders, number) for number in range(100, 120)])
        change(store)
    _all_write(folders, made, forks, index)


@pytest.mark.slow
def test_several_processes_open_a_damaged_index(folders, made, forks):
    for number in range(100, 120):
        made.compute(folders, number)
    open_store(folders.root).close()
    for file in folders.root.glob("index.sqlite*"):
        file.write_bytes(b"not a database at all" * 500)
    _all_write(folders, made, forks, None)


def _all_write(folders, made, forks, index):
    """Six processes open the store at once and compute runs: the index has all of them, and those from before."""
    pids = [forks("background", "write_many", folders.root, index or "-", 5 * k, 5)[0] for k in range(6)]
    _wait(lambda: all(map(_ended, pids)))
    with open_store(folders.root, index) as store:
        wanted = {made.planned(number).id for number in (*range(30), *range(100, 120))}
        assert {row.id for row in store.rows(["status=done"])} == wanted
        assert store.verify() == []
    assert not list(folders.root.glob(".*.lock"))


def test_records_load_no_database_before_one_is_opened():
    code = (
        "import sys, mesascope.records; "
        "sys.exit(', '.join({'sqlalchemy', 'psycopg', 'xarray', 'jax'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
