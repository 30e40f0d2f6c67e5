"""Sweeps in this process: what is recorded, what is kept, and what is refused."""

import json
import shutil

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.records import RecordError, RunFolders, held, open_store
from mesascope.studies import (
    Driver,
    SpecError,
    StudySpec,
    SweepError,
    execute,
    parse_spec,
    study_status,
    sweep,
)
from mesascope.studies.sweeps import _compute, _execute
from mesascope.studies.sweeps._drivers import announced, drivers
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare
from mesascope.studies.sweeps._worker import work

QUIET = lambda *_: None  # noqa: E731


def study_of(data):
    return parse_spec(data, StudySpec)


@pytest.fixture
def grid(study_with):
    axes = [{"path": "init.a", "values": [0.1, 0.3]}, {"path": "law.scale", "values": [1, "1/2"]}]
    return study_of(study_with(axes=axes))


def test_every_run_of_a_study_is_computed_once(grid, tmp_path):
    told = []
    first = sweep(grid, tmp_path / "s", progress=told.append)
    assert (first.total, first.done, first.failed, first.reused) == (4, 4, 0, 0)
    assert first.succeeded and told[-1].through == told[-1].total == 4
    again = sweep(grid, tmp_path / "s")
    assert (again.done, again.failed, again.reused) == (0, 0, 4)
    assert again.ids == first.ids
    with open_store(tmp_path / "s") as store:
        found = store.to_xarray("a-study")
        assert store.verify() == []
    np.testing.assert_array_equal(found["init.a"], [0.1, 0.3])
    assert list(found["law.scale"].values) == [1, "1/2"]
    # the same flows by the library itself, to the tolerance of rest
    for i, a in enumerate([0.1, 0.3]):
        for j, scale in enumerate([1.0, 0.5]):
            start = ms.LinearAttention.diagonal(2, a, 0.1)
            process, task = ms.DiagonalUnitary(ms.Gaussian(scale), 2), ms.NextToken(5)
            end = ms.gradient_flow(start, process, task)
            np.testing.assert_allclose(found["w_kq"][i, j], end.model.w_kq, rtol=0, atol=1e-8)
            np.testing.assert_allclose(found["loss"][i, j], end.loss[-1], rtol=1e-12)


def test_an_extended_study_computes_what_is_new(study_with, tmp_path):
    few, more = (study_of(study_with(axes=[{"path": "init.a", "values": v}])) for v in ([0.1], [0.2, 0.1]))
    sweep(few, tmp_path / "s")
    result = sweep(more, tmp_path / "s")
    assert (result.done, result.reused) == (1, 1)
    with pytest.raises(RecordError, match="the store has another study 'a-study'"):
        sweep(study_of(study_with(axes=[{"path": "init.a", "values": [7]}])), tmp_path / "s")


def test_points_that_mean_the_same_are_one_run(study_with, tmp_path):
    laws = [{"kind": "gaussian"}, {"kind": "gaussian", "scale": 1}]
    result = sweep(study_of(study_with(axes=[{"path": "law", "values": laws}])), tmp_path / "s")
    assert (result.total, result.done) == (1, 1)
    with open_store(tmp_path / "s") as store:
        assert len(set(store.to_xarray("a-study").run.values)) == 1


def test_a_path_is_kept_with_its_losses(study_with, tmp_path):
    study = study_of(study_with())
    (run,) = sweep(study, tmp_path / "s").ids
    path = RunFolders(tmp_path / "s").trajectory(run)
    assert path.sizes["time"] <= 33 and float(path.time[0]) == 0
    assert bool((path.loss.diff("time") <= 0).all())
    outcome = RunFolders(tmp_path / "s").finished(run).outcome
    np.testing.assert_array_equal(path.w_kq[-1], outcome["w_kq"])
    # computed in a batch of another size: to rounding
    np.testing.assert_allclose(path.loss[-1], outcome["loss"], rtol=1e-14)


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
    assert record.state == "failed" and record.outcome["result"] == "diverged"
    # it would diverge again
    again = sweep(study, tmp_path / "s")
    assert (again.done, again.failed, again.reused) == (0, 1, 2)


@pytest.mark.slow
def test_every_kind_can_be_swept(study_with, many_losses, tmp_path):
    train = {
        "process": {"kind": "linear-regression", "dim": 2},
        "examples": 3,
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
        "steps": 20,
        "batch": 8,
        "held_out": 16,
        "record_every": 5,
    }
    asked = {name: train[name] for name in ("process", "examples", "model")}
    asked |= {"tasks": 80, "search": False, "learners": ["zero", "gradient-descent"]}
    exact = {**study_with()["base"], "init": {"kind": "diagonal", "a": "1/10", "b": "1/10"}}
    exact |= {"law": {"kind": "rademacher"}, "mask": "off-diagonal"}
    studies = [
        {"name": "t", "kind": "train", "base": train, "axes": [{"path": "seed", "seeds": 2}]},
        {"name": "i", "kind": "identify", "base": asked, "axes": [{"path": "seed", "seeds": 1}]},
        {"name": "c", "kind": "certify", "base": exact},
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
    assert proved.proved.values.tolist() == [True]
    assert np.isfinite(lost.loss).all()


# One run


@pytest.fixture
def planned(study_with, tmp_path):
    """A store with one planned run, and its id."""
    study = study_of(study_with())
    with open_or_make(tmp_path / "s") as store:
        prepared = prepare(study, check(study, QUIET), store, QUIET)
    return RunFolders(tmp_path / "s"), prepared.left[0]


def test_a_run_that_raises_is_recorded_with_its_traceback(planned, monkeypatch):
    folders, run = planned

    def broken(*_):
        raise RuntimeError("it broke\nin two lines")

    monkeypatch.setattr(_execute, "compute", broken)
    assert execute(folders.root, run) == "failed"
    record = folders.finished(run)
    assert record.error == "RuntimeError: it broke in two lines"
    assert "in broken" in record.traceback
    assert record.attempts == 1
    assert execute(folders.root, run) == "kept"


def test_what_ran_out_of_memory_is_tried_again_by_the_next_sweep(planned, monkeypatch, study_with):
    folders, run = planned

    def full(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_execute, "compute", full)
        assert execute(folders.root, run) == "failed"
    result = sweep(study_of(study_with()), folders.root)
    assert (result.done, result.failed) == (1, 0)
    assert folders.finished(run).attempts == 2


def test_a_run_that_somebody_computes_is_left_alone(planned):
    folders, run = planned
    with folders.holding(run):
        assert execute(folders.root, run) == "busy"
    assert execute(folders.root, run) == "done"


def test_a_run_of_other_code_is_refused(planned, monkeypatch, study_with):
    folders, run = planned
    monkeypatch.setattr("mesascope.studies.sweeps._run_id._own_code", lambda: "0+other")
    with pytest.raises(RecordError, match="planned with other code than there is here; install the same"):
        execute(folders.root, run)
    assert folders.state(run) == "planned"
    # a sweep by the other code plans runs of its own
    result = sweep(study_of(study_with()), folders.root)
    assert (result.done, result.reused) == (1, 0) and result.ids != (run,)


def test_ctrl_c_records_nothing(planned, monkeypatch):
    folders, run = planned

    def interrupted(*_):
        raise ValueError("what compiled code makes of an interrupt")

    monkeypatch.setattr(_execute, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(folders.root, run, stopped=lambda: True)
    assert folders.state(run) == "planned"


def test_files_that_fail_are_tried_again_and_at_last_recorded(planned, monkeypatch, study_with):
    folders, _ = planned
    tried = []

    def unreadable(*_):
        tried.append(1)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(_execute, "compute", unreadable)
        result = sweep(study_of(study_with()), folders.root, retries=2)
    assert len(tried) == 3
    assert (result.failed, result.failures[0].error) == (1, "OSError: [Errno 5] Input/output error")
    assert folders.finished(result.ids[0]).outcome == {"failure": "machine"}
    assert sweep(study_of(study_with()), folders.root).done == 1


def test_a_disk_that_is_full_ends_the_sweep(planned, monkeypatch, study_with):
    folders, run = planned

    def full(*_):
        raise RecordError("cannot write run.json: No space left on device; free space")

    monkeypatch.setattr(RunFolders, "finish", full)
    with pytest.raises(SweepError, match=r"No space left on device.*the same command resumes"):
        sweep(study_of(study_with()), folders.root)
    assert folders.state(run) == "planned"


def test_a_training_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    base = {
        "process": {"kind": "linear-regression", "dim": 2},
        "examples": 3,
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
        "steps": 6,
        "batch": 4,
        "held_out": 8,
        "record_every": 2,
        "checkpoint_every": 2,
    }
    study = study_of({"name": "t", "kind": "train", "base": base})
    whole = sweep(study, tmp_path / "whole")
    run = whole.ids[0]
    with open_or_make(tmp_path / "cut") as store:
        prepare(study, check(study, QUIET), store, QUIET)
    folders = RunFolders(tmp_path / "cut")
    # as a kill in the middle leaves it: the checkpoints until then, and no record
    there, here = RunFolders(tmp_path / "whole").folder(run), folders.folder(run)
    shutil.copytree(there / "checkpoint", here / "checkpoint")
    last = max(here.glob("checkpoint/step-*.checkpoint"))
    last.unlink()
    begun = []
    real = _compute.TrainSpec.run
    monkeypatch.setattr(
        _compute.TrainSpec,
        "run",
        lambda spec, folder: begun.append(len(list(folder.glob("step-*")))) or real(spec, folder),
    )
    assert sweep(study, tmp_path / "cut").done == 1
    assert begun[0] >= 1
    one, other = (RunFolders(tmp_path / name).finished(run).outcome for name in ("whole", "cut"))
    assert one == other


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scheduler": "cloud"}, "scheduler 'cloud' is unknown; use one of in-process, local, slurm"),
        ({"scheduler": "in-process", "workers": 2}, "workers are not started for scheduler 'in-process'"),
        ({"scheduler": "tcp://127.0.0.1:1", "workers": 2}, "workers are not started for scheduler 'tcp"),
        ({"scheduler": "local", "workers": 0}, "workers must be at least 1, got 0"),
        ({"retries": -1}, "retries must not be negative"),
        ({"scheduler": "slurm"}, "--scheduler slurm needs --workers"),
    ],
)
def test_settings_that_make_no_sense_are_refused(study_with, tmp_path, settings, said):
    with pytest.raises(ValueError) as error:
        sweep(study_of(study_with()), tmp_path / "s", **settings)
    assert str(error.value).startswith(said)


def test_a_bad_point_leaves_no_store(study_with, tmp_path):
    study = study_of(study_with(axes=[{"path": "horizon", "values": [5, 1]}]))
    with pytest.raises(SpecError, match=r"^axes\[0\]\.values\[1\]"):
        sweep(study, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_64_bits_are_needed(study_with, tmp_path):
    with jax.enable_x64(False), pytest.raises(ValueError, match="a sweep in this process needs 64-bit"):
        sweep(study_of(study_with()), tmp_path / "s")


def test_a_worker_switches_64_bits_on(planned):
    folders, run = planned
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    try:
        assert work(str(folders.root), run) == "done"
    finally:
        jax.config.update("jax_enable_x64", before)


def test_a_scheduler_that_does_not_answer(study_with, tmp_path, monkeypatch):
    monkeypatch.setattr("mesascope.studies.sweeps._clusters._CONNECT", "0.2s")
    with pytest.raises(SweepError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1; start one"):
        sweep(study_of(study_with()), tmp_path / "s", scheduler="tcp://127.0.0.1:1")


def test_a_queue_needs_its_package(study_with, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask_jobqueue", None)
    with pytest.raises(
        ValueError, match=r"needs dask-jobqueue; install it: pip install 'mesascope\[cluster\]'"
    ):
        sweep(study_of(study_with()), tmp_path / "s", scheduler="lsf", workers=1)


# How far a study is


def test_status_counts_and_knows_who_drives(planned, study_with):
    folders, run = planned
    with open_store(folders.root) as store:
        before = study_status(store, "a-study")
        assert (before.total, before.planned, before.running, before.drivers) == (1, 1, 0, ())
        with (
            announced(folders.root, "a-study", "local", "http://127.0.0.1:1/status", 1) as announcement,
            folders.holding(run),
        ):
            announcement._said = -10.0
            announcement.say(per_minute=30.0)
            now = study_status(store, "a-study")
        assert (now.planned, now.running) == (0, 1)
        assert (now.per_minute, now.seconds_left) == (30.0, 2.0)
        assert now.drivers[0].dashboard == "http://127.0.0.1:1/status"
        execute(folders.root, run)
        after = study_status(store, "a-study")
        assert (after.done, after.drivers) == (1, ())
        with pytest.raises(RecordError, match="no study 'other'"):
            study_status(store, "other")


def test_drivers_that_were_killed_are_forgotten(planned):
    folders, _ = planned
    dead = Driver(study="a-study", host="", pid=2**22 + 1, scheduler="local", dashboard=None, total=1)
    with announced(folders.root, "a-study", "local", None, 1):
        (mine,) = (folders.root / "drivers").iterdir()
        host = json.loads(mine.read_text())["host"]
        left = mine.with_name("left-1-a-study.json")
        left.write_text(dead.model_copy(update={"host": host}).model_dump_json())
        assert len(drivers(folders.root, "a-study")) == 1
        assert not left.exists()
    with open_store(folders.root) as store:
        assert store.verify() == []


def test_a_held_folder_is_running(planned):
    folders, run = planned
    with held(folders.folder(run), "run"), open_store(folders.root) as store:
        assert study_status(store, "a-study").running == 1
