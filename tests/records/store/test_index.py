"""The index says what the folders say, on SQLite and on PostgreSQL, whatever happened in between."""

import math
import os
import random
import re
import shutil
import sqlite3
import warnings
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL

from mesascope.records import (
    InUseError,
    RecordError,
    RunFolders,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    open_store,
)
from mesascope.records.store._engine import make_engine
from mesascope.records.store._open import network_file_system

RICH = {
    "loss": 0.25,
    "zero": -0.0,
    "huge": 1e22,
    "count": 3,
    "big": 2**60 + 1,
    "lost": math.nan,
    "converged": True,
    "verdict": "identified",
    "nothing": None,
    "matrix": [[1.0, 2.0, 3.0], [4.0, 5.0, -math.inf]],
    "deep": {"step": {"size": 0.1}},
    "product": 1 + 2j,
    "NUL": "a\0b",
}


def test_rows_are_what_the_folders_say(store, made):
    plans = [made.planned(number) for number in range(4)]
    for plan in plans:
        store.folders.plan(plan)
    store.folders.finish(made.ended(plans[0], outcome=RICH))
    store.folders.finish(made.ended(plans[1], outcome={}, error="NaN\0 after 3 steps", traceback="…"))
    store.enter([plan.id for plan in plans])
    with store.folders.holding(plans[2].id):
        rows = {row.id: row for row in store.rows()}
        assert [rows[plan.id].status for plan in plans] == ["done", "failed", "running", "planned"]
        assert [row.id for row in store.rows(["status=running"])] == [plans[2].id]
        assert [row.id for row in store.rows(["status=planned"])] == [plans[3].id]
        assert {row.id for row in store.rows(["status!=running"])} == {plans[k].id for k in (0, 1, 3)}
        assert store.count(["status=planned"]) == store.count(["status=running"]) == 1
    row = rows[plans[0].id]
    record = store.folders.run(plans[0].id)
    for name in ("kind", "code", "spec", "error", "attempts", "started", "ended", "seconds"):
        assert getattr(row, name) == getattr(record, name)
    expected = {**record.outcome, "NUL": "a\ufffdb"}  # PostgreSQL has no NUL
    assert row.outcome == expected and list(row.outcome) == list(expected)
    assert math.copysign(1, row.outcome["zero"]) == -1 and type(row.outcome["huge"]) is float
    assert rows[plans[1].id].error == "NaN\ufffd after 3 steps"
    assert store.rows(limit=2) == store.rows()[:2] and len(store.rows(limit=2)) == 2


@pytest.mark.slow
def test_an_index_that_was_deleted_is_rebuilt_equal(folders, made, index):
    for number in range(20):
        made.compute(folders, number)
    folders.plan(made.planned(20))
    axes = (StudyAxis(name="a", labels=tuple(range(20))),)
    points = tuple(StudyPoint(run=made.planned(k).id, place=(k,)) for k in range(20))
    folders.write_study(StudyRecord(name="s", kind="flow", spec={}, axes=axes, points=points))
    with open_store(folders.root, index) as store:
        before, data = store.rows(), store.to_xarray("s")
        assert len(before) == 21 and store.reindex() == 21 and store.rows() == before
    if index is None:
        for file in folders.root.glob("index.sqlite*"):
            file.unlink()
    else:
        _drop_everything(index)
    with open_store(folders.root, index) as store:
        assert store.rows() == before and store.to_xarray("s").identical(data) and store.verify() == []


def _drop_everything(url):
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def test_an_index_that_is_damaged_is_built_again(folders, made, tmp_path):
    made.compute(folders, 1)
    open_store(folders.root).close()
    for file in folders.root.glob("index.sqlite*"):
        file.write_bytes(b"not a database at all" * 500)
    with pytest.warns(UserWarning, match=r"not a database\); it is built again from the folders"):
        store = open_store(folders.root)
    with store:
        assert store.count(["status=done"]) == 1 and store.verify() == []
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("kept" * 5000)
    with pytest.raises(
        RecordError, match=r"not a database\); remove it, and the next command builds it again"
    ):
        open_store(folders.root, f"sqlite:///{thesis}")
    assert thesis.read_text() == "kept" * 5000


_ADDED = (
    "CREATE TEMP TABLE one AS SELECT * FROM runs WHERE id = 'RUN'; UPDATE one SET id = replace(id, '0', '1');"
)
CHANGES = {
    "status": "UPDATE runs SET status = 'failed' WHERE id = 'RUN'",
    "planned": "UPDATE runs SET status = 'planned' WHERE id = 'RUN'",
    "brief": "UPDATE runs SET brief = replace(brief, '0.5', '7.5') WHERE id = 'RUN'",
    "specification": "UPDATE runs SET spec = '{}' WHERE id = 'RUN'",
    "seconds": "UPDATE runs SET seconds = 7 WHERE id = 'RUN'",
    "kind": "UPDATE runs SET kind = 'train' WHERE id = 'RUN'",
    "removed": "DELETE FROM runs WHERE id = 'RUN'",
    "added": f"{_ADDED} INSERT INTO runs SELECT * FROM one",
    "exchanged": f"{_ADDED} DELETE FROM runs WHERE id = 'RUN'; INSERT INTO runs SELECT * FROM one",
    "twice": """CREATE TABLE copy AS SELECT * FROM runs; DROP TABLE runs; ALTER TABLE copy RENAME TO runs;
        INSERT INTO runs SELECT * FROM runs LIMIT 1""",
    "place": "UPDATE study_points SET place = 5 - place WHERE run <> 'RUN'",
    "left the study": "DELETE FROM study_points WHERE run = 'RUN'",
    "axes": "UPDATE studies SET axes = replace(axes, '3', '4')",
    "number of rows": "UPDATE tally SET rows = rows + 1",
    "no numbers of rows": "DELETE FROM tally",
    "outcome": "UPDATE outcomes SET outcome = '{\"loss\": 7.0}' WHERE run = 'RUN'",
    "no outcome": "DELETE FROM outcomes WHERE run = 'RUN'",
}
READERS = {
    "rows": lambda store: store.rows(),
    "the last": lambda store: store.rows(limit=1),
    "done": lambda store: store.rows(["status=done"]),
    "by outcome": lambda store: store.rows(["outcome.loss<0.6"]),
    "count": lambda store: store.count(["status=done", "study=all"]),
    "known": lambda store: store.refuse_unknown(["outcome.loss=0.5", "spec.seed=1", "study=all"]),
    "studies": lambda store: store.studies(),
    "to_xarray": lambda store: store.to_xarray("all").to_dict(),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_something_else_has_changed_is_built_again_before_it_answers(folders, made, change):
    runs = [made.compute(folders, number) for number in (1, 2, 3)]
    axis = StudyAxis(name="seed", labels=(1, 2, 3))
    points = tuple(StudyPoint(run=run, place=(at,)) for at, run in enumerate(runs))
    with open_store(folders.root) as store:
        store.write_study(StudyRecord(name="all", kind="flow", spec={}, axes=(axis,), points=points))
        answers = {name: read(store) for name, read in READERS.items()}
    file = folders.root / "index.sqlite"
    written = file.read_bytes()
    for name, read in READERS.items():
        file.write_bytes(written)
        with closing(sqlite3.connect(file)) as database:
            database.executescript(CHANGES[change].replace("RUN", runs[0]))
        with open_store(folders.root) as store, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert read(store) == answers[name], (change, name)
        assert all("it is built again from the folders" in str(one.message) for one in said)
        # outcomes are compared where they are shown
        shows = {"rows", "done", "by outcome", "to_xarray"}
        assert said or ("outcome" in change and name not in shows), (change, name)


def test_a_store_that_is_open_notices_a_change_of_its_index(folders, made):
    run = made.compute(folders, 1)
    with open_store(folders.root) as store:
        rows = store.rows(["status=done"])
        with closing(sqlite3.connect(folders.root / "index.sqlite")) as database, database:
            database.execute("UPDATE runs SET status = 'failed'")
        with pytest.warns(
            UserWarning, match=r"its rows are not those that were written\); it is built again"
        ):
            assert store.rows(["status=done"]) == rows
        store.enter([run])  # what this process writes is no such change
        made.compute(store.folders, 2)
        store.refresh()
        assert len(store.rows(["status=done"])) == 2


def test_an_index_elsewhere_that_something_else_has_changed_is_refused(folders, made, tmp_path):
    made.compute(folders, 1)
    file = tmp_path / "elsewhere.sqlite"
    open_store(folders.root, f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM runs")
    with open_store(folders.root, f"sqlite:///{file}") as store:
        for read in (store.rows, store.reindex):
            with pytest.raises(
                RecordError, match=r"not those that were written\); remove it, and the next command"
            ):
                read()


def test_the_index_of_another_store_in_the_place_of_ones_own_is_built_again(folders, made, tmp_path):
    made.compute(folders, 1)
    other = RunFolders.create(tmp_path / "other")
    open_store(other.root).close()
    shutil.copy(other.root / "index.sqlite", folders.root)
    with pytest.warns(UserWarning, match=r"is of the store at .*other, not of .*; it is built again"):
        store = open_store(folders.root)
    with store:
        assert store.count() == 1 and store.verify() == []


@pytest.mark.slow
def test_an_index_with_rotten_bytes_is_rebuilt(folders, made):
    runs = [made.compute(folders, number) for number in range(3)]
    with open_store(folders.root) as store:
        rows = store.rows()
    file = folders.root / "index.sqlite"
    whole, rot = file.read_bytes(), random.Random(1)
    for _ in range(8):
        rotten = bytearray(whole)
        for _ in range(rot.choice((3, 30, 300))):
            rotten[rot.randrange(len(whole))] = rot.randrange(256)
        file.write_bytes(rotten)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "index .* it is built again")
            with open_store(folders.root) as store:
                assert store.reindex() == len(runs)
        with open_store(folders.root) as store:
            assert store.rows() == rows and store.verify() == []


@pytest.mark.slow
def test_a_copy_of_a_value_in_a_search_tree_of_the_index_is_never_shown(folders, made):
    """SQLite reads `ended` and `id` from its trees, where a disk may rot them, and not from the rows that have sums."""
    made.compute(folders, 1)
    with open_store(folders.root) as store:
        (row,) = store.rows()
    file = folders.root / "index.sqlite"
    whole = file.read_bytes()
    for value in (row.id, row.ended):
        places = [found.start() for found in re.finditer(re.escape(value).encode(), whole)]
        assert len(places) > 2  # the row, and two trees
        for place in places:
            rotten = bytearray(whole)
            rotten[place + 3] ^= 1
            file.write_bytes(rotten)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "index .* it is built again")
                with open_store(folders.root) as store:
                    assert store.rows() == store.rows(["status=done"]) == [row]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("runs", "id", "NULL"),
        ("runs", "id", "'../../..'"),
        ("runs", "status", "'dne'"),
        ("runs", "spec", "5"),
        ("runs", "seconds", "'x'"),
        ("parts", "part", "NULL"),
        ("store", "folder", "NULL"),
        ("outcomes", "outcome", "5"),
    ],
)
def test_a_value_that_has_rotted_is_noticed_and_the_index_is_built_again(folders, made, table, column, value):
    """The file is whole to SQLite, but what stands in one row is none of its column."""
    run = made.planned(1).id
    folders.plan(made.planned(1))
    points = (StudyPoint(run=run, place=(0,)),)
    axis = StudyAxis(name="a", labels=(1,))
    folders.write_study(StudyRecord(name="s", kind="flow", spec={}, axes=(axis,), points=points))
    open_store(folders.root).close()
    with closing(sqlite3.connect(folders.root / "index.sqlite")) as file, file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with closing(sqlite3.connect(folders.root / "index.sqlite")) as file, file:
        file.execute(f"UPDATE {table} SET {column} = {value}")

    def asked():
        with open_store(folders.root) as store:
            return [row.id for row in store.rows()], store.to_xarray("s").run.item()

    with pytest.warns(UserWarning, match=r"is damaged, or no index \(.*it is built again from the folders"):
        assert asked() == ([run], run)
    assert asked() == ([run], run)  # without a warning


def test_what_others_write_is_seen_when_a_store_is_opened(folders, made, index):
    with open_store(folders.root, index) as store:
        assert store.rows() == []
        folders.plan(made.planned(1))
        assert len(store.rows()) == 0
        store.refresh()
        assert [row.status for row in store.rows()] == ["planned"]
        folders.finish(made.ended(made.planned(1), outcome={}, error="lost"))
        store.refresh()
        assert [row.status for row in store.rows()] == ["failed"]
        folders.finish(made.ended(made.planned(1), attempts=2))
        made.compute(folders, 2)
    with open_store(folders.root, index) as store:
        assert [row.status for row in store.rows()] == ["done", "done"]
        shutil.rmtree(folders.folder(made.planned(2).id))
        store.refresh()
        assert store.count() == 1 and store.verify() == []


def test_times_that_go_backwards_are_harmless(store, made, monkeypatch):
    """Folders and records whose times lie years ahead, or long ago: nothing is overlooked."""
    import time

    past = time.time_ns
    monkeypatch.setattr(
        time, "time_ns", lambda: past() - int(timedelta(days=900) / timedelta(microseconds=1)) * 1000
    )
    first = made.compute(store.folders, 1)
    os.utime(store.folders.folder(first).parent, (4e9, 4e9))
    store.refresh()
    assert store.count() == 1
    for number in range(2, 6):
        plan = made.planned(number)
        store.folders.plan(plan)
        began = f"20{30 - number}-01-01T00:00:00Z"
        store.folders.finish(made.ended(plan, started=began, ended=f"20{29 - number}-01-01T00:00:00Z"))
        os.utime(store.folders.folder(plan.id).parent, (1e9, 1e9))
    store.refresh()
    assert store.count(["status=done"]) == 5 and store.verify() == []
    assert [row.ended for row in store.rows()] == sorted((row.ended for row in store.rows()), reverse=True)


def test_runs_are_removed_with_their_rows(store, made, tmp_path):
    runs = [made.compute(store.folders, number) for number in range(4)]
    store.refresh()
    with (
        store.folders.holding(runs[3]),
        pytest.raises(InUseError, match=r"is being computed, .*; stop it first"),
    ):
        store.remove(runs)
    assert store.count() == 4
    assert store.remove(runs[:2]) == 2 and store.count() == 2 and store.verify() == []
    (store.folders.folder(runs[2]) / "link").symlink_to(tmp_path)
    with pytest.raises(RecordError, match="leads out of the store"):
        store.remove(runs[2:])
    assert tmp_path.exists() and store.count() == len(store.folders.ids()) >= 1


def test_verify_and_reindex_clean_up_after_kills(store, made):
    run = made.compute(store.folders, 1)
    folder = store.folders.folder(run)
    dead = f".run.json.{os.uname().nodename}-999999999-0123abcd.tmp"
    (folder / dead).write_text("half")
    half = folder.with_name(f".{'2' * 32}.0123abcd.removed")
    (half / "checkpoint").mkdir(parents=True)
    for empty in ("0" * 32, "1" * 32):
        store.folders.folder(empty).mkdir(parents=True)
    os.utime(store.folders.folder("0" * 32), (1e9, 1e9))  # the other may be about to get its plan
    assert store.verify() == [] and store.reindex() == 1
    assert not (folder / dead).exists() and not half.exists()
    assert sorted(store.folders.ids()) == sorted([run, "1" * 32])


def test_an_index_that_is_wrong_is_noticed(folders, made):
    import sqlite3

    for number in range(3):
        made.compute(folders, number)
    open_store(folders.root).close()
    connection = sqlite3.connect(folders.root / "index.sqlite")
    run = made.planned(0).id
    connection.execute("UPDATE runs SET seconds = 77 WHERE id = ?", (run,))
    connection.execute("DELETE FROM runs WHERE id = ?", (made.planned(1).id,))
    connection.execute("UPDATE parts SET written = ?", (folders.root.stat().st_mtime_ns,))
    for part in folders.parts():
        at = (folders.root / "runs" / part).stat().st_mtime_ns
        connection.execute("UPDATE parts SET written = ? WHERE part = ?", (at, part))
    connection.commit()
    connection.close()
    with open_store(folders.root) as store:
        reported = store.verify()
        assert len(reported) == 2 and run in reported[0] and made.planned(1).id in reported[1]
        with pytest.warns(UserWarning, match="it is built again"):
            store.reindex()
        assert store.verify() == []


def test_a_store_is_found_by_its_index_and_after_it_was_moved(folders, made, index, tmp_path):
    made.compute(folders, 1)
    url = index or f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"
    with pytest.raises(RecordError, match="holds no index of a store"):
        open_store(url)
    open_store(folders.root, url).close()
    with open_store(url) as store:
        assert store.folders.root == folders.root and store.count() == 1
    folders.root.rename(tmp_path / "moved")
    with pytest.raises(RecordError, match=r"was at .*store, which is not here; give its folder"):
        open_store(url)
    open_store(tmp_path / "moved", url).close()
    with open_store(url) as store:
        assert store.folders.root == tmp_path / "moved" and store.count() == 1
    other = RunFolders.create(tmp_path / "other")
    with pytest.raises(RecordError, match="give every store a database or a schema of its own"):
        open_store(other.root, url)
    with pytest.raises(RecordError, match="give the index once"):
        open_store(url, url)


def test_network_file_systems_are_warned_of_once(folders, tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path}/with\\040space nfs4 rw 0 0\n")
    assert network_file_system(tmp_path, mounts) is None
    assert network_file_system(tmp_path / "with space" / "store", mounts) == "nfs4"
    assert network_file_system(tmp_path, Path("/nonexistent")) is None
    monkeypatch.setattr("mesascope.records.store._open.network_file_system", lambda folder: "nfs4")
    with pytest.warns(UserWarning, match="lies on nfs4: SQLite's index is unsafe"):
        open_store(folders.root).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_store(folders.root).close()


def test_compare(store, made):
    one, two = (made.compute(store.folders, number) for number in (1, 2))
    store.refresh()
    found = store.compare([one, two[:8]])
    assert found == {"spec.init.a": (0.1, 0.2), "spec.seed": (1, 2), "outcome.loss": (0.5, 1.0)}
    with pytest.raises(RecordError, match="at least two"):
        store.compare([one])


def test_an_interrupt_that_meets_the_closing_of_a_connection_prints_nothing(tmp_path, monkeypatch, caplog):
    engine = make_engine(URL.create("sqlite", database=str(tmp_path / "index.sqlite")))

    def interrupted(connection):
        raise KeyboardInterrupt

    connection = engine.connect()
    monkeypatch.setattr(engine.dialect, "do_close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connection.close()
    assert not caplog.records
