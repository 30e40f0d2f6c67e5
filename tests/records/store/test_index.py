"""The index says what the folders say, on SQLite and on PostgreSQL, whatever happened in between."""

import math
import os
import shutil
import warnings
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesascope.records import (
    InUseError,
    RecordError,
    RunFolders,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    open_store,
    reindex,
)
from mesascope.records.store._network import network_file_system

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
        assert [rows[plan.id].state for plan in plans] == ["done", "failed", "running", "planned"]
        assert [row.id for row in store.rows(["state=running"])] == [plans[2].id]
        assert [row.id for row in store.rows(["state=planned"])] == [plans[3].id]
        assert {row.id for row in store.rows(["state!=running"])} == {plans[k].id for k in (0, 1, 3)}
        assert store.count(["state=planned"]) == store.count(["state=running"]) == 1
    row = rows[plans[0].id]
    record = store.folders.run(plans[0].id)
    for name in ("kind", "code", "spec", "error", "attempts", "started", "ended", "seconds"):
        assert getattr(row, name) == getattr(record, name)
    expected = {**record.outcome, "NUL": "a\ufffdb"}  # PostgreSQL has no NUL
    assert row.outcome == expected and list(row.outcome) == list(expected)
    assert math.copysign(1, row.outcome["zero"]) == -1 and type(row.outcome["huge"]) is float
    assert rows[plans[1].id].error == "NaN\ufffd after 3 steps"
    assert store.rows(limit=2) == store.rows()[:2] and len(store.rows(limit=2)) == 2


PLACES = st.sampled_from(["a", "b.c", "b.d", "list.1", "digits.3", "absent"])
SCALARS = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.1, 0.5, 1e22, -0.0, "x", "y", "0.1", "é", True, False, None])
)


@pytest.fixture(scope="module")
def searched(request, tmp_path_factory):
    """Two stores of the same runs, on SQLite and, where there is one, on PostgreSQL; and their specifications."""
    made = request.getfixturevalue("made")
    folders = RunFolders.create(tmp_path_factory.mktemp("searched") / "store")
    values = [0, 1, 3, -1, 0.1, 0.5, 0.7, 1e22, "x", "z", "0.1", "é", True, False, None, [1], {"e": 1}]
    specs = {}
    for number, value in enumerate(values):
        spec = {
            "a": value,
            "b": {"c": value, "d": values[-number]},
            "list": [9, value],
            "digits": {"3": value},
        }
        plan = made.planned(number, **spec)
        folders.plan(plan)
        folders.finish(made.ended(plan, outcome=spec))
        specs[plan.id] = spec
    server = request.getfixturevalue("server")
    server.psql("CREATE DATABASE searched")
    with open_store(folders.root) as one, open_store(folders.root, server.get_uri("searched")) as two:
        yield (one, two), specs


def _at(spec, path):
    for part in path.split("."):
        if isinstance(spec, list):
            spec = spec[int(part)]
        elif isinstance(spec, dict) and part in spec:
            spec = spec[part]
        else:
            return ...
    return spec


def _kind(value):
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _holds(value, sign, other):
    same = value is not ... and _kind(value) == _kind(other)
    equal = same and value == other
    if sign in ("=", "!="):
        return equal == (sign == "=")
    if not same or value is None or isinstance(value, bool):
        return equal and sign in ("<=", ">=")
    less = value < other if _kind(value) == "number" else value.encode() < other.encode()
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[sign]


def _written(value):
    import json

    return json.dumps(value) if not isinstance(value, str) or value == "0.1" else value


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from(["spec", "outcome"]),
    path=PLACES,
    sign=st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    value=SCALARS,
)
def test_filters_find_what_python_finds(searched, head, path, sign, value):
    stores, specs = searched
    expected = {run for run, spec in specs.items() if _holds(_at(spec, path), sign, value)}
    for store in stores:
        text = f"{head}.{path}{sign}{_written(value)}"
        assert {row.id for row in store.rows([text])} == expected, (text, store)
        assert store.count([text]) == len(expected)


def test_several_filters_hold_together(store, made):
    runs = [made.compute(store.folders, number) for number in range(6)]
    store.refresh()
    found = store.rows(
        ["spec.init.a>=0.2", "outcome.loss<2.5", "kind=flow", "seconds<1", f"id={runs[3][:4]}"]
    )
    assert [row.id for row in found] == [runs[3]]
    assert store.rows(["started>2026-01-02"]) == [] and len(store.rows(["ended<2026-01-01T00:02"])) == 2
    assert store.find(runs[2][:10]).id == runs[2]
    first = Counter(made.planned(number).id[0] for number in range(17))  # 17 runs, 16 digits
    for number in range(17):
        store.folders.plan(made.planned(number))
    store.refresh()
    with pytest.raises(RecordError, match="several runs begin with"):
        store.find(max(first, key=first.get))
    with pytest.raises(RecordError, match="no run begins with"):
        store.find("0" * 32)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("done", "write NAME=VALUE"),
        ("sate=done", "filter by one of state, study"),
        ("state=finished", "a state is one of planned, running, done, failed"),
        ("state<done", "only = and !="),
        ("id=xyz", "hexadecimal"),
        ("seconds=long", "compared with a number"),
        ("spec.=1", "filter by one of"),
        ("spec.a..b=1", "filter by one of"),
        ('spec."a"=1', "filter by one of"),
        ("spec.a=[1]", "compare with a number, a text"),
        ("spec.a';drop table runs;--=1 or 1=1", ""),
    ],
)
def test_bad_filters_are_told_in_one_line(searched, text, told):
    for store in searched[0]:
        before = store.count()
        try:
            assert store.rows([text]) == [] and not told
        except RecordError as error:
            assert told in str(error) and "\n" not in str(error)
        assert store.count() == before > 0


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


def test_an_index_that_is_damaged_is_told_and_rebuilt(folders, made):
    made.compute(folders, 1)
    open_store(folders.root).close()
    for file in folders.root.glob("index.sqlite*"):
        file.write_bytes(b"not a database at all" * 500)
    with pytest.raises(RecordError, match=r"not a database; build it anew: mesascope runs reindex"):
        open_store(folders.root)
    assert reindex(folders.root) == 1


def test_what_others_write_is_seen_when_a_store_is_opened(folders, made, index):
    with open_store(folders.root, index) as store:
        assert store.rows() == []
        folders.plan(made.planned(1))
        assert len(store.rows()) == 0
        store.refresh()
        assert [row.state for row in store.rows()] == ["planned"]
        folders.finish(made.ended(made.planned(1), outcome={}, error="lost"))
        store.refresh()
        assert [row.state for row in store.rows()] == ["failed"]
        folders.finish(made.ended(made.planned(1), attempts=2))
        made.compute(folders, 2)
    with open_store(folders.root, index) as store:
        assert [row.state for row in store.rows()] == ["done", "done"]
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
    assert store.count(["state=done"]) == 5 and store.verify() == []
    assert [row.ended for row in store.rows()] == sorted((row.ended for row in store.rows()), reverse=True)


def test_runs_are_removed_with_their_rows(store, made, tmp_path):
    runs = [made.compute(store.folders, number) for number in range(4)]
    store.refresh()
    with store.folders.holding(runs[3]), pytest.raises(InUseError, match="is being computed; stop it first"):
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
        told = store.verify()
        assert len(told) == 2 and run in told[0] and made.planned(1).id in told[1]
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
    monkeypatch.setattr("mesascope.records.store._network.network_file_system", lambda folder: "nfs4")
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


def _study(store, made, outcomes, axes=None, extra=()):
    points = []
    for number, outcome in enumerate(outcomes):
        plan = made.planned(number)
        store.folders.plan(plan)
        if outcome is not None:
            error = None if outcome else "failed"
            store.folders.finish(made.ended(plan, outcome=outcome, error=error))
        points.append(StudyPoint(run=plan.id, place=(number // 3, number % 3)))
    axes = axes or (
        StudyAxis(name="init.a", labels=(0.1, 0.2, 0.3)),
        StudyAxis(name="law", labels=("g", "s", "c")),
    )
    record = StudyRecord(name="grid", kind="flow", spec={"x": 1}, axes=axes, points=(*points, *extra))
    store.write_study(record)
    store.enter([point.run for point in points])
    return store.to_xarray("grid")


def test_a_study_becomes_one_labelled_data_set(store, made):
    shared = {"w": [[1.0, 2.0], [3.0, "nan"]], "text": "yes", "c": {"re": 1.0, "im": 2.0}, "state": 5.0}
    outcomes = [{"loss": 0.1 * k, "n": k, "ragged": [1.0] * k, "flag": True, **shared} for k in range(5)]
    outcomes[1]["mixed"], outcomes[2]["mixed"] = "text", 1.0
    shared_run = StudyPoint(run=made.planned(0).id, place=(2, 2))
    data = _study(store, made, [*outcomes, {}, None], extra=(shared_run,))
    assert dict(data.sizes) == {"init.a": 3, "law": 3, "w_row": 2, "w_column": 2}
    assert data["init.a"].values.tolist() == [0.1, 0.2, 0.3] and data["law"].values.tolist() == [
        "g",
        "s",
        "c",
    ]
    assert data["state"].values.ravel().tolist() == ["done"] * 5 + ["failed", "planned", "", "done"]
    assert data["run"].values[0, 1] == made.planned(1).id and data["run"].values[2, 1] == ""
    loss = data["loss"].values.ravel()
    assert loss[:5].tolist() == [0.1 * k for k in range(5)] and np.isnan(loss[5:8]).all() and loss[8] == 0
    assert data["n"].values.ravel()[:5].tolist() == [0, 1, 2, 3, 4] and data["flag"].dtype == float
    assert data["w"].sel({"init.a": 0.2, "law": "s"}).values[1, 0] == 3.0 and np.isnan(
        data["w"].values[1, 1, 1, 1]
    )
    assert (
        data["text"].dtype == object
        and data["text"].values[0, 0] == "yes"
        and np.isnan(data["text"].values[2, 1])
    )
    assert data["c"].values[0, 0] == 1 + 2j and data["outcome.state"].values[0, 0] == 5
    assert data.attrs["left_out"] == ["mixed", "ragged"]
    assert (
        data.attrs["study"] == "grid"
        and data.attrs["code"] == ["code-1"]
        and data.attrs["spec"] == '{"x": 1}'
    )


def test_a_study_without_axes_is_one_number_for_each_name(store, made):
    plan = made.planned(0)
    store.folders.plan(plan)
    store.folders.finish(made.ended(plan, outcome={"loss": 0.5, "product": [1.0, 2.0]}))
    point = StudyPoint(run=plan.id, place=())
    store.write_study(StudyRecord(name="one", kind="flow", spec={}, axes=(), points=(point,)))
    store.enter([plan.id])
    data = store.to_xarray("one")
    assert data["loss"].dims == () and float(data["loss"]) == 0.5
    assert data["product"].values.tolist() == [1.0, 2.0] and data["state"].item() == "done"


def test_complete_studies_keep_types_and_zipped_axes_share_a_dimension(store, made):
    zipped = StudyAxis(name="pair", coordinates={"p": (1, 2, 3), "q": ("x", "y", "z")})
    axes = (StudyAxis(name="n", labels=(1, 2)), zipped)
    data = _study(store, made, [{"n": k, "ok": k > 2, "v": [k, k]} for k in range(6)], axes)
    assert (
        data["outcome.n"].dtype == np.int64
        and data["ok"].dtype == bool
        and data["v"].dims == ("n", "pair", "v_index")
    )
    assert data["p"].dims == data["q"].dims == ("pair",) and data["q"].values.tolist() == ["x", "y", "z"]
    assert data.isel(n=1, pair=2)["outcome.n"] == 5
    assert "left_out" not in data.attrs
    assert store.studies() == {"grid": {"done": 6}}
    with pytest.raises(RecordError, match="no study 'gird' in this store; it has: grid"):
        store.to_xarray("gird")
