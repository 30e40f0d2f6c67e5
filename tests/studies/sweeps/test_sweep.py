"""Sweeps in this process: their records, and the input that they refuse."""

import errno
import fcntl
import shutil
import socket

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.records import RecordError, RunFolders, open_store
from mesascope.report import gather
from mesascope.specs import MissingExtraError, known_kinds
from mesascope.studies import SpecError, StudySpec, SweepError, TrainSpec, parse_spec, study_status, sweep
from mesascope.studies.sweeps import _execute
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare


def study_of(data):
    return parse_spec(data, StudySpec)


@pytest.fixture
def grid(study_with):
    axes = [{"path": "init.a", "values": [0.1, 0.3]}, {"path": "law.scale", "values": [1, "1/2"]}]
    return study_of(study_with(axes=axes))


@pytest.mark.slow
def test_layers_with_all_rules_of_a_memory_are_trained_by_one_sweep(tmp_path):
    base = {
        "process": {"kind": "rotation-ar", "law": "gaussian", "dim": 2},
        "horizon": 4,
        "model": {
            "kind": "composed",
            "embedding": "paired-tokens",
            "readout": "first-block",
            "layers": ["memory"],
        },
        "steps": 2,
        "batch": 2,
        "held_out": 2,
    }
    rules = sorted(known_kinds("rule"))
    axis = {"path": "model.layers", "values": [[{"kind": "memory", "rule": rule}] for rule in rules]}
    study = study_of({"name": "rules", "kind": "train", "base": base, "axes": [axis]})
    found = sweep(study, tmp_path / "s")
    assert (found.done, found.failed) == (len(rules), 0)
    with open_store(tmp_path / "s") as store:
        losses = [row.outcome["loss"] for row in store.rows()]
    assert np.isfinite(losses).all() and len(set(losses)) == len(rules)


@pytest.mark.slow
def test_every_run_of_a_study_is_computed_once(grid, tmp_path):
    seen = []
    first = sweep(grid, tmp_path / "s", progress=seen.append)
    assert (first.total, first.done, first.failed, first.reused) == (4, 4, 0, 0)
    assert first.succeeded and seen[-1].done == seen[-1].total == 4
    again = sweep(grid, tmp_path / "s")
    assert (again.done, again.failed, again.reused) == (0, 0, 4)
    assert again.ids == first.ids
    with open_store(tmp_path / "s") as store:
        found = store.to_xarray("a-study")
        assert store.verify() == []
    np.testing.assert_array_equal(found["init.a"], [0.1, 0.3])
    assert list(found["law.scale"].values) == [1, "1/2"]
    # the same flows by the library itself, to the tolerance of the steady state
    for i, a in enumerate([0.1, 0.3]):
        for j, scale in enumerate([1.0, 0.5]):
            start = ms.LinearAttention.diagonal(2, a, 0.1)
            process, task = ms.DiagonalUnitary(ms.Gaussian(scale), 2), ms.NextToken(5)
            end = ms.gradient_flow(start, process, task)
            np.testing.assert_allclose(found["w_kq"][i, j], end.model.w_kq, rtol=0, atol=1e-8)
            np.testing.assert_allclose(found["loss"][i, j], end.loss[-1], rtol=1e-12)


def test_an_extended_study_computes_the_new_points(study_with, tmp_path):
    few, more = (study_of(study_with(axes=[{"path": "init.a", "values": v}])) for v in ([0.1], [0.2, 0.1]))
    sweep(few, tmp_path / "s")
    result = sweep(more, tmp_path / "s")
    assert (result.done, result.reused) == (1, 1)
    with pytest.raises(RecordError, match="the store has another study 'a-study'"):
        sweep(study_of(study_with(axes=[{"path": "init.a", "values": [7]}])), tmp_path / "s")


def test_points_of_equal_meaning_are_one_run(study_with, tmp_path):
    laws = [{"kind": "gaussian"}, {"kind": "gaussian", "scale": 1}]
    result = sweep(study_of(study_with(axes=[{"path": "law", "values": laws}])), tmp_path / "s")
    assert (result.total, result.done) == (1, 1)
    with open_store(tmp_path / "s") as store:
        assert len(set(store.to_xarray("a-study").run.values)) == 1


@pytest.mark.slow
def test_a_study_moves_with_its_files(many_losses, tmp_path):
    data = {**many_losses(1), "axes": []}
    data["base"]["law"] = {"kind": "empirical", "file": "x.npy"}
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    np.save(here / "x.npy", [1.0, -1.0, 2.0])
    with open_or_make(tmp_path / "s") as store:
        study = parse_spec(data, StudySpec, folder=here)
        (run,) = prepare(study, check(study), store).left
    here.rename(there)
    first = sweep(parse_spec(data, StudySpec, folder=there), tmp_path / "s")
    assert (first.ids, first.done) == ((run,), 1)
    there.rename(here)
    assert sweep(parse_spec(data, StudySpec, folder=here), tmp_path / "s").reused == 1
    with open_store(tmp_path / "s") as store:
        assert store.verify() == []


def test_a_path_is_stored_with_its_losses(study_with, tmp_path):
    study = study_of(study_with())
    (run,) = sweep(study, tmp_path / "s").ids
    path = RunFolders(tmp_path / "s").trajectory(run)
    assert path.sizes["time"] <= 33 and float(path.time[0]) == 0
    assert bool((path.loss.diff("time") <= 0).all())
    outcome = RunFolders(tmp_path / "s").finished(run).outcome
    np.testing.assert_array_equal(path.w_kq[-1], outcome["w_kq"])
    # computed in a batch of another size: to rounding
    np.testing.assert_allclose(path.loss[-1], outcome["loss"], rtol=1e-14)


@pytest.mark.slow
def test_descents_are_flows_with_a_method(study_with, tmp_path):
    base = {**study_with()["base"], "method": "descent", "lr": 0.001, "steps": 50}
    (run,) = sweep(study_of(study_with(base=base)), tmp_path / "s").ids
    path = RunFolders(tmp_path / "s").trajectory(run)
    assert path.step[0] == 0 and path.step[-1] == 50 and path.sizes["step"] == 32
    record = RunFolders(tmp_path / "s").finished(run)
    assert record.outcome["loss"] == pytest.approx(float(path.loss[-1]), rel=1e-14)


def test_a_flow_that_diverges_has_failed_and_the_others_are_done(study_with, tmp_path):
    base = {**study_with()["base"], "method": "descent", "steps": 200}
    study = study_of(study_with(base=base, axes=[{"path": "lr", "values": [0.001, 50, 0.002]}]))
    result = sweep(study, tmp_path / "s")
    assert (result.done, result.failed) == (2, 1)
    (failure,) = result.failures
    assert failure.count == 1 and failure.error.startswith("diverged: ")
    record = RunFolders(tmp_path / "s").finished(failure.run)
    assert record.status == "failed" and record.outcome["result"] == "diverged"
    # it would diverge again
    again = sweep(study, tmp_path / "s")
    assert (again.done, again.failed, again.reused) == (0, 1, 2)


@pytest.mark.slow
def test_every_kind_can_be_swept(study_with, prompts_with, many_losses, tmp_path):
    train = prompts_with(steps=20, batch=8, held_out=16, record_every=5)
    asked = {name: train[name] for name in ("process", "examples", "model")}
    asked |= {"tasks": 80, "search": False, "learners": ["zero", "gradient-descent"]}
    exact = {**study_with()["base"], "init": {"kind": "diagonal", "a": "1/10", "b": "1/10"}}
    exact |= {"law": {"kind": "rademacher"}, "mask": "off-diagonal"}
    studies = [
        {"name": "t", "kind": "train", "base": train, "axes": [{"path": "seed", "seeds": 2}]},
        {"name": "i", "kind": "identify", "base": asked, "axes": [{"path": "seed", "seeds": 2}]},
        {"name": "c", "kind": "certify", "base": exact, "axes": [{"path": "horizon", "values": [5]}]},
        many_losses(2),
    ]
    for data in studies:
        result = sweep(study_of(data), tmp_path / "s")
        assert result.succeeded, result.failures
    folders = RunFolders(tmp_path / "s")
    with open_store(tmp_path / "s") as store:
        trained, named, proved, lost = (store.to_xarray(one["name"]) for one in studies)
        assert store.verify() == []
    assert trained.loss.sizes == {"seed": 2}
    path = folders.trajectory(str(trained.run.values[0]))
    assert list(path.step.values) == [5, 10, 15, 20]
    assert (folders.folder(str(trained.run.values[0])) / "checkpoint").is_dir()
    assert str(named.verdict.values[0]) in ("identified", "ambiguous", "none")
    (entry,) = gather(["i"], store=tmp_path / "s").entries
    distances = dict(entry.figures)["distances"]
    (cells,) = distances.panels[0].traces
    assert cells.ynames == ("seed = 1", "seed = 0")  # from below
    assert {*cells.xnames} == {"zero", "gradient-descent"}
    expected = {
        one["learner"]: min(one["distance"], 1.0)  # as far as the colours go
        for one in folders.finished(str(named.run.values[0])).outcome["ranking"]
    }
    assert dict(zip(cells.xnames, cells.z[1], strict=True)) == expected
    assert proved.proved.values.tolist() == [True]
    assert np.isfinite(lost.loss).all()


@pytest.mark.slow
def test_runs_that_are_removed_during_the_sweep_fail_alone(many_losses, tmp_path, monkeypatch):
    """The first is removed while it is computed, the last while it waits; the same command computes them."""
    study, compute, computed = study_of(many_losses(4)), _execute.compute, []
    ids = [run for run in check(study).runs]

    def removed(spec, folder):
        if not computed:
            shutil.rmtree(folder)
            shutil.rmtree(RunFolders(tmp_path / "s").folder(ids[-1]))
        computed.append(folder)
        return compute(spec, folder)

    monkeypatch.setattr(_execute, "compute", removed)
    result = sweep(study, tmp_path / "s")
    assert (result.done, result.failed, len(computed)) == (2, 2, 3)
    assert result.failures[0].error.startswith("it was removed from the store during the sweep")
    with open_store(tmp_path / "s") as store:
        assert store.count() == 2 and store.verify() == []
        status = study_status(store, "losses")
        # a watch does not wait for the runs that were removed
        assert (status.total, status.done, status.planned) == (2, 2, 0)
    assert sweep(study, tmp_path / "s").done == 2


def test_a_file_system_without_locks_is_warned_of(many_losses, tmp_path, monkeypatch):
    assert RunFolders.create(tmp_path / "s").has_locks()

    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with pytest.warns(UserWarning, match="its file system has no locks: a second sweep"):
        assert sweep(study_of(many_losses(1)), tmp_path / "s").done == 1
    assert not list((tmp_path / "s").glob(".probe*"))


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "cloud"}, "scheduler 'cloud' is unknown; use one of in-process, local, slurm"),
        ({"scheduler": "in-process", "workers": 2}, "workers are not started for scheduler 'in-process'"),
        ({"scheduler": "tcp://127.0.0.1:1", "workers": 2}, "workers are not started for scheduler 'tcp"),
        ({"scheduler": "local", "workers": 0}, "workers must be at least 1, got 0"),
        ({"retries": -1}, "retries must be at least 0"),
        ({"scheduler": "slurm"}, "--scheduler slurm needs --workers"),
    ],
)
def test_settings_out_of_range_are_refused(study_with, tmp_path, settings, message):
    with pytest.raises(ValueError) as error:
        sweep(study_of(study_with()), tmp_path / "s", **settings)
    assert str(error.value).startswith(message)


def test_a_bad_point_leaves_no_store(study_with, tmp_path):
    study = study_of(study_with(axes=[{"path": "horizon", "values": [5, 1]}]))
    with pytest.raises(SpecError, match=r"^axes\[0\]\.values\[1\]"):
        sweep(study, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_64_bits_are_needed(study_with, tmp_path):
    with jax.enable_x64(False), pytest.raises(ValueError, match="a sweep in this process needs 64-bit"):
        sweep(study_of(study_with()), tmp_path / "s")


def test_a_scheduler_that_does_not_answer(study_with, tmp_path, monkeypatch):
    monkeypatch.setattr("mesascope.studies.sweeps._clusters._PATIENCE", 0.2)
    with pytest.raises(SweepError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1; start one"):
        sweep(study_of(study_with()), tmp_path / "s", scheduler="tcp://127.0.0.1:1")


def test_something_else_that_listens_is_no_scheduler(study_with, tmp_path, monkeypatch):
    monkeypatch.setattr("mesascope.studies.sweeps._clusters._PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SweepError, match=f"no scheduler answers at {address}; start one"):
            sweep(study_of(study_with()), tmp_path / "s", scheduler=address)


def test_a_queue_needs_its_package(study_with, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask_jobqueue", None)
    with pytest.raises(MissingExtraError, match=r"package dask_jobqueue: pip install 'mesascope\[cluster\]'"):
        sweep(study_of(study_with()), tmp_path / "s", scheduler="lsf", workers=1)


@pytest.mark.slow
def test_pools_of_several_sizes_are_trained_on(tmp_path):
    pool = {"kind": "task-pool", "tasks": 4, "process": {"kind": "linear-regression", "dim": 2}}
    base = {
        **{"process": pool, "examples": 3, "model": {"kind": "prompt-linear-transformer", "layers": 1}},
        **{"steps": 5, "batch": 8, "held_out": 16},
    }
    axes = [{"path": "process.tasks", "values": [1, 16]}]
    result = sweep(study_of({"name": "p", "kind": "train", "base": base, "axes": axes}), tmp_path / "s")
    assert result.succeeded
    with open_store(tmp_path / "s") as store:
        found = store.to_xarray("p")
    for place, tasks in enumerate([1, 16]):
        alone = parse_spec({**base, "process": {**pool, "tasks": tasks}}, TrainSpec).run()
        np.testing.assert_allclose(found["loss"][place], alone.loss, rtol=1e-6)
    assert abs(float(np.ptp(found["loss"].values))) > 1e-3
