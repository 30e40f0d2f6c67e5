"""The store of runs: what a run costs beyond its computation, and an index of 100 000 runs."""

import hashlib
import json
import warnings

import numpy as np
import pytest

from mesascope.records import (
    PlannedRun,
    RunFolders,
    RunRecord,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    open_store,
    provenance,
)
from mesascope.records._sealed import _seal

MANY, STUDY = 100_000, 10_000


def _id(number):
    return hashlib.sha256(str(number).encode()).hexdigest()[:32]


def _spec(number):
    """A flow's specification with all its fields."""
    init = {"kind": "diagonal", "a": number % 100 / 10, "b": number // 1000 / 10}
    shared = {
        "law": {"kind": "gaussian", "scale": 1.0},
        "dim": 5,
        "horizon": 100,
        "weights": None,
        "rho": "t-1",
    }
    return {**shared, "init": init, "mask": None, "until": "steady-state", "seed": number}


def _outcome(number):
    """A flow's outcome at d = 5: 150 weights and a few numbers, 3.5 kB as text."""
    draw = np.random.default_rng(number % 100)
    few = {
        "loss": number / 1000,
        "converged": number % 3 == 0,
        "time": 3.5,
        "steps": 100,
        "product": [0.1] * 5,
    }
    return {**few, "w_kq": draw.normal(size=(10, 10)).tolist(), "w_pv": draw.normal(size=(5, 10)).tolist()}


def _url(kind, tmp_path_factory):
    if kind == "sqlite":
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR is not set
        pgserver = pytest.importorskip("pgserver", exc_type=ImportError)
    return pgserver.get_server(tmp_path_factory.mktemp("pg") / "data").get_uri()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def large(request, tmp_path_factory):
    """A store whose index has 100 000 rows; their folders are left out, for the index is what is measured."""
    from mesascope.records.store._engine import writing
    from mesascope.records.store._index import chunks, put_runs
    from mesascope.records.store._rows import index_row

    folders = RunFolders.create(tmp_path_factory.mktemp("large") / "store")
    facts = {
        "kind": "flow",
        "code": "1",
        "error": None,
        "attempts": 1,
        "seconds": 0.3,
        "written": 0,
        "started": "",
    }
    with open_store(folders.root, _url(request.param, tmp_path_factory)) as store:
        for chunk in chunks(range(MANY)):
            rows = []
            for number in chunk:
                outcome, status = _outcome(number), "done" if number % 50 else "failed"
                ended = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
                own = {"id": _id(number), "spec": _spec(number), "status": status, "ended": ended}
                rows.append(index_row({**facts, **own, "outcome": outcome}))
            with writing(store._engine) as connection:
                put_runs(connection, rows)
        side = int(STUDY**0.5)
        axes = tuple(StudyAxis(name=name, labels=tuple(range(side))) for name in "ab")
        points = tuple(StudyPoint(run=_id(k), place=(k % side, k // side)) for k in range(STUDY))
        store.write_study(StudyRecord(name="large", kind="flow", spec={}, axes=axes, points=points))
        yield request.param, store


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("spec.init.a=0.1",), 1000),
        (("spec.seed=77",), 1),
        (("outcome.loss<0.05",), 50),
        (("status=failed",), 2000),
        (("study=large", "spec.init.a=0.1"), 100),
    ],
)
def test_list_with_a_filter(benchmark, bar, large, filters, found):
    kind, store = large
    bar(f"list {found} of 100 000 runs with the filter {' '.join(filters)}, {kind}", seconds=0.5)
    assert len(benchmark.pedantic(store.rows, (filters,), rounds=5, warmup_rounds=1)) == found


def test_the_command(benchmark, bar, large, run_command):
    """The whole of it, from a cold start: Python, imports, what has changed in the folders, the table."""
    kind, store = large
    bar(f"`mesascope runs list spec.init.a=0.1`, 1000 of 100 000 runs, {kind}, cold", seconds=1.5)
    index = store._engine.url.render_as_string(hide_password=False)
    command = ("runs", "list", "spec.init.a=0.1", "--store", store.folders.root, "--index", index)
    ended = []
    benchmark.pedantic(lambda: ended.append(run_command(*command)), rounds=5, warmup_rounds=1)
    assert all("1000 runs, 50 shown" in one.output for one in ended)


def test_first_list(benchmark, bar, large):
    """SQLite's rows are all checked, as by the first question of every command."""
    from mesascope.records.store import _tally

    kind, store = large
    bar(f"list 1000 of 100 000 runs with a filter, {kind}, first question", seconds=0.5)

    def unchecked():
        _tally._checked.clear()
        return ((("spec.init.a=0.1",),), {})

    assert len(benchmark.pedantic(store.rows, setup=unchecked, rounds=5)) == 1000


def test_opening(benchmark, bar, large):
    kind, store = large
    bar(f"list the last 50 of 100 000 runs, {kind}", seconds=0.5)
    assert len(benchmark.pedantic(store.rows, ((), 50), rounds=5, warmup_rounds=1)) == 50


def test_labelled_arrays(benchmark, bar, large):
    kind, store = large
    bar(f"to_xarray of 10 000 runs with 150 weights each, {kind}", seconds=10)
    data = benchmark.pedantic(store.to_xarray, ("large",), rounds=3, warmup_rounds=1)
    assert data["w_kq"].shape == (100, 100, 10, 10)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_cost_of_a_run(benchmark, bar, tmp_path, tmp_path_factory, kind):
    """Plan, hold, finish with a trajectory of 50 times, enter: everything but computing."""
    bar(f"plan, hold, finish and enter one run, {kind}", seconds=0.02)
    folders, origin = RunFolders.create(tmp_path / "store"), provenance()
    data = {"time": ("time", np.arange(50.0)), "w": (("time", "i", "j"), np.ones((50, 10, 10)))}
    numbers = iter(range(MANY))

    def one(store):
        number = next(numbers)
        plan = PlannedRun(id=_id(number), kind="flow", spec=_spec(number), code="1")
        folders.plan(plan)
        with folders.holding(plan.id):
            facts = {"status": "done", "outcome": _outcome(number), "seconds": 0.1, "provenance": origin}
            folders.finish(RunRecord(**plan.model_dump(), **facts, started="", ended=""), data)
        store.enter([plan.id])

    with open_store(folders.root, _url(kind, tmp_path_factory)) as store:
        benchmark.pedantic(one, (store,), rounds=100, warmup_rounds=3)
        assert store.count(["status=done"]) == 103


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A store of 100 000 planned runs, with their folders and its index."""
    folders = RunFolders.create(tmp_path_factory.mktemp("planned") / "store")
    for number in range(MANY):
        folder = folders.folder(_id(number))
        folder.mkdir(parents=True)
        plan = PlannedRun(id=_id(number), kind="flow", spec=_spec(number), code="1").model_dump(mode="json")
        document = {"format": "mesascope.planned-run/1", "sha256": _seal(plan), "content": plan}
        (folder / "planned.json").write_text(json.dumps(document))  # `plan` would wait for the disk each time
    open_store(folders.root).close()
    return folders


def test_planned_runs(benchmark, bar, planned, run_command):
    bar("`mesascope runs list status=planned`, 100 000 planned runs, cold", seconds=1.5)
    ended = []
    command = ("runs", "list", "status=planned", "--store", planned.root)
    benchmark.pedantic(lambda: ended.append(run_command(*command)), rounds=5, warmup_rounds=1)
    assert all("100000 runs, 50 shown" in one.output for one in ended)
