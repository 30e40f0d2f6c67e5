"""The index says what the folders say, on SQLite and on PostgreSQL, whatever happened in between."""

import math
import os
import shutil
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL

from mesascope.records import InUseError, RecordError, RunFolders, open_store
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
