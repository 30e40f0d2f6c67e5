"""`mesascope runs export`: tables, arrays, MLflow and TensorBoard, also of odd outcomes."""

import csv
import hashlib
import json
import math
import sys
from pathlib import Path

import pytest

from mesascope.records import (
    PlannedRun,
    RunFolders,
    RunRecord,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    open_store,
    read_dataset,
)


def test_export_of_tables_and_arrays(run, store, tmp_path):
    import pyarrow.parquet

    def export(form, out, *more):
        return run("runs", "export", *more, "--format", form, "--out", tmp_path / out, "--store", store.root)

    assert export("csv", "runs.csv", "status=done").out == f"{tmp_path / 'runs.csv'}\n"
    with open(tmp_path / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and [row["spec.init.a"] for row in rows] == ["0.3", "0.2", "0.1", "0.0"]
    assert json.loads(rows[0]["outcome.w"]) == [[1.0, 2.0]]
    export("parquet", "runs.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "runs.parquet").to_pydict()
    assert table["outcome.loss"] == [None, 1.5, 1.0, 0.5, 0.0, None] and table["outcome.w"][1] == [[1.0, 2.0]]
    assert table["outcome.nan"][1] != table["outcome.nan"][1]
    assert export("netcdf", "six.nc", "--study", "six").status == 0
    data = read_dataset(tmp_path / "six.nc")
    assert data["loss"].values[:4].tolist() == [0, 0.5, 1, 1.5] and data["status"].values[5] == "planned"
    assert "name it with --study" in export("netcdf", "none.nc").refusal
    assert "nothing was written" in export("csv", "none.csv", "spec.dim=6").refusal
    assert not (tmp_path / "none.csv").exists()


ODD = {
    "loss": -math.inf,
    "nested": {"empty": {}},
    "c": [1 + 2j, 3.0],
    "ragged": [[1.0], [1.0, 2.0]],
    "huge": 10**400,
    "a/b ": 1.5,
    "++": 0.5,
    "-+": 0.25,
    "": 2.0,
    "texts": ["a", "ü"],
    "escape": "\x1b[2J\nsecond line",
}


@pytest.fixture
def odd(tmp_path, origin):
    """A store of two runs of different kinds, with all values that a record may hold."""
    folders = RunFolders.create(tmp_path / "odd")
    points = []
    for place, (kind, outcome) in enumerate(
        {"flow": ODD, "train": {"loss": "text", "c": 1, "huge": 1}}.items()
    ):
        plan = PlannedRun(id=f"{place}" * 32, kind=kind, spec={"ü": [1, "a"]}, code="1")
        folders.plan(plan)
        times = {"started": "", "ended": f"{2 - place}", "seconds": 1.0}
        record = RunRecord(**plan.model_dump(), status="done", outcome=outcome, provenance=origin, **times)
        folders.finish(record, {"z": ("time", [1j, 2.0]), "s": ("time", ["a", "b"])})
        points.append(StudyPoint(run=plan.id, place=(place,)))
    axes = (StudyAxis(name="n", labels=(1, 2)),)
    folders.write_study(StudyRecord(name="odd", kind="flow", spec={}, axes=axes, points=tuple(points)))
    return folders.root


@pytest.mark.slow
def test_odd_outcomes_are_listed_compared_and_exported(run, odd, tmp_path):
    import pyarrow.parquet

    out = run("runs", "list", "--store", odd).out
    assert "\x1b" not in out and len(out.splitlines()) == 7
    assert "\x1b" not in run("runs", "show", "0", "--store", odd).out
    found = run("runs", "compare", "0", "1", "--store", odd, "--json").json["differences"]
    assert found["kind"] == ["flow", "train"] and found["outcome.++"] == [0.5, None]
    ended = run("runs", "list", "--store", odd, "--limit", "9" * 30, "--json")
    assert len(ended.json["runs"]) == 2, ended
    for form, more in (("csv", ()), ("parquet", ()), ("tensorboard", ()), ("netcdf", ("--study", "odd"))):
        ended = run("runs", "export", "--format", form, *more, "--out", tmp_path / form, "--store", odd)
        assert ended.status == 0, ended
    rows = pyarrow.parquet.read_table(tmp_path / "parquet").to_pylist()
    assert rows[0]["outcome.nested.empty"] == "{}" and json.loads(rows[0]["outcome.huge"]) == 10**400
    data = read_dataset(tmp_path / "netcdf")
    assert data["a_b_"].values[0] == 1.5 and data["_+"].values[0] == 0.5
    assert data["_+_2"].values[0] == 0.25  # the same letters, after those that NetCDF does not take
    assert "huge" in data.attrs["left_out"]


@pytest.mark.slow
def test_odd_outcomes_are_exported_to_mlflow(run, odd, tmp_path):
    def export(out):
        return run("runs", "export", "--format", "mlflow", "--out", out, "--store", odd)

    assert export(tmp_path / "new" / "mlflow.db").status == 0
    assert "is a folder" in export(tmp_path).refusal
    assert "ftp://me:***@host" in export("ftp://me:hidden@host").refusal
    assert "hidden" not in export("ftp://me:hidden@host").err


@pytest.mark.slow
def test_an_interrupt_while_mlflow_makes_its_tables_leaves_no_database(odd, tmp_path, monkeypatch):
    import mlflow.tracking

    def interrupted(uri):
        Path(uri.removeprefix("sqlite:///")).write_text("half of the tables")
        raise KeyboardInterrupt

    monkeypatch.setattr(mlflow.tracking, "MlflowClient", interrupted)
    with pytest.raises(KeyboardInterrupt), open_store(odd) as store:
        store.export("mlflow", tmp_path / "new" / "mlflow.db")
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.slow
def test_a_run_that_was_computed_again_is_exported_again(run, origin, tmp_path):
    import sqlite3

    folders = RunFolders.create(tmp_path / "again")
    plan = PlannedRun(id="0" * 32, kind="flow", spec={}, code="1")
    folders.plan(plan)
    times = {"started": "", "seconds": 1.0, "provenance": origin}
    failed = {"status": "failed", "error": "too long", "traceback": "", "outcome": {}}
    done = {"status": "done", "outcome": {"loss": 2.0}}
    for place, end in enumerate((failed, done, done)):  # the third export has nothing to do
        if place < 2:
            folders.finish(RunRecord(**plan.model_dump(), **end, ended=str(place), **times), {})
        for form in ("mlflow", "tensorboard"):
            assert (
                run(
                    "runs", "export", "--format", form, "--out", tmp_path / form, "--store", folders.root
                ).status
                == 0
            )
    connection = sqlite3.connect(tmp_path / "mlflow")
    query = "SELECT status, count(*) FROM runs WHERE lifecycle_stage = 'active' GROUP BY status"
    assert connection.execute(query).fetchall() == [("FINISHED", 1)]
    connection.close()
    assert (tmp_path / "tensorboard" / plan.id / "mesascope.txt").read_text() == "done 1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "tables", ["notes (x)", "experiments (x)", "alembic_version (version_num varchar(32))"]
)
def test_only_a_database_of_mlflow_is_taken_for_one(run, store, tmp_path, tables):
    import sqlite3

    connection = sqlite3.connect(tmp_path / "own.db")
    connection.execute(f"CREATE TABLE {tables}")
    connection.close()
    before = (tmp_path / "own.db").read_bytes()
    told = run(
        "runs", "export", "--format", "mlflow", "--out", tmp_path / "own.db", "--store", store.root
    ).refusal
    assert "own.db exists and is not a database of MLflow; name another file, or remove it" in told
    assert (tmp_path / "own.db").read_bytes() == before


@pytest.mark.slow
def test_a_study_replaces_only_a_study(run, store, tmp_path):
    from mesascope.records import write_dataset

    def export():
        words = ("--format", "netcdf", "--study", "six", "--out", tmp_path / "a.nc", "--store", store.root)
        return run("runs", "export", *words)

    write_dataset(tmp_path / "a.nc", {"loss": ("time", [1.0, 0.5])})
    assert "a.nc exists and is not a netcdf file of an export" in export().refusal
    (tmp_path / "a.nc").unlink()
    assert [export().status for _ in range(2)] == [0, 0]


def test_exports_replace_only_exports(run, store, tmp_path):
    for name in ("flow.toml", "flow.csv"):
        (tmp_path / name).write_text("dim = 5")
        for form in ("csv", "parquet"):
            told = run(
                "runs", "export", "--format", form, "--out", tmp_path / name, "--store", store.root
            ).refusal
            assert (
                f"{name} exists and is not a {form} file of an export; name another file, or remove it"
                in told
            )
        assert (tmp_path / name).read_text() == "dim = 5"
    for _ in range(2):
        assert (
            run("runs", "export", "--format", "csv", "--out", tmp_path / "a", "--store", store.root).status
            == 0
        )


@pytest.mark.slow
def test_export_to_mlflow_and_tensorboard(run, store, tmp_path):
    """Twice: runs that were exported are not written again."""
    for _ in range(2):
        for form in ("mlflow", "tensorboard"):
            ended = run("runs", "export", "--format", form, "--out", tmp_path / form, "--store", store.root)
            assert ended.status == 0 and ended.err == ""
    import sqlite3

    connection = sqlite3.connect(tmp_path / "mlflow")
    assert connection.execute("SELECT count(*), count(DISTINCT run_uuid) FROM runs").fetchone() == (5, 5)
    assert dict(connection.execute("SELECT status, count(*) FROM runs GROUP BY status")) == {
        "FINISHED": 4,
        "FAILED": 1,
    }
    metrics = connection.execute("SELECT value FROM metrics WHERE key = 'loss' ORDER BY value").fetchall()
    assert [value for (value,) in metrics] == [0, 0.5, 1, 1.5]
    curve = connection.execute(
        "SELECT DISTINCT step, value FROM metrics WHERE key = 'trajectory.loss' ORDER BY step"
    )
    assert curve.fetchall() == [(0, 1.0), (1, 0.5)]
    assert ("0.2",) in connection.execute("SELECT value FROM params WHERE key = 'init.a'").fetchall()
    connection.close()

    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    folders = sorted((tmp_path / "tensorboard").iterdir())
    assert len(folders) == 5
    chosen = tmp_path / "tensorboard" / hashlib.sha256(b"3").hexdigest()[:32]
    (file,) = chosen.glob("events*")
    values = [value for event in LegacyEventFileLoader(str(file)).Load() for value in event.summary.value]
    assert [value.simple_value for value in values if value.tag == "loss"] == [1.5, 1.0, 0.5]
    assert any(value.tag.startswith("settings") for value in values)


@pytest.mark.parametrize(
    ("form", "package"), [("parquet", "pyarrow"), ("mlflow", "mlflow"), ("tensorboard", "tensorboard")]
)
def test_missing_packages_are_named_with_their_extra(run, store, tmp_path, monkeypatch, form, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    message = run(
        "runs", "export", "--format", form, "--out", tmp_path / "out", "--store", store.root
    ).refusal
    assert (
        message
        == f"mesascope runs: this needs the package {package}: pip install 'mesascope[exporters]' (in a clone: make setup)"
    )
