"""One run: how its end is recorded, when it is tried again, and the status of its study."""

import json
import os
import shutil
import subprocess
import sys
import time

import jax
import pytest

from mesascope.records import RecordError, RunFolders, UnreadableError, folder_lock, open_store
from mesascope.studies import (
    Driver,
    FlowSpec,
    Request,
    StudySpec,
    SweepError,
    execute,
    parse_spec,
    study_status,
    sweep,
)
from mesascope.studies.sweeps import _compute, _execute, _status, _together
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare
from mesascope.studies.sweeps._status import announced, drivers
from mesascope.studies.sweeps._worker import work


def study_of(data):
    return parse_spec(data, StudySpec)


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
    assert execute(folders.root, run) == "cached"


def test_a_run_out_of_memory_is_tried_again_by_the_next_sweep(planned, monkeypatch, study_with):
    folders, run = planned

    def full(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_execute, "compute", full)
        assert execute(folders.root, run) == "failed"
    result = sweep(study_of(study_with()), folders.root)
    assert (result.done, result.failed) == (1, 0)
    assert folders.finished(run).attempts == 2


def test_a_run_beyond_its_time_limit_fails_and_is_computed_again_by_the_next_sweep(
    planned, monkeypatch, study_with
):
    folders, run = planned
    with monkeypatch.context() as patch:
        patch.setattr(_execute, "compute", lambda *_: time.sleep(60))
        assert execute(folders.root, run, Request(time_limit=0.1, in_driver=True)) == "failed"
    assert folders.finished(run).error == "TimeLimitError: it took longer than the time limit of 0.1 s"
    result = sweep(study_of(study_with()), folders.root, time_limit=1000)
    assert (result.done, result.failed) == (1, 0)


@pytest.mark.slow
def test_a_worker_ends_at_the_time_limit_and_a_copy_of_it_at_once(tmp_path):
    code = """
import os, pathlib, time
from mesascope.studies.sweeps._limits import limited
with limited(None, False, print):
    os.fork()
os.write(1, b"went on")
def hangs():
    time.sleep(60)
with limited(0.1, False, pathlib.Path("where").write_text):
    hangs()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "went on")
    assert "in hangs" in (tmp_path / "where").read_text()


def test_a_run_that_exits_is_recorded_as_failed_also_in_a_batch(planned, monkeypatch):
    folders, run = planned

    def exits(*_):
        raise SystemExit(0)

    monkeypatch.setattr(_execute, "compute", exits)
    assert execute(folders.root, run) == "failed"
    assert folders.finished(run).error == "SystemExit: 0"
    monkeypatch.setattr(_together, "compute_together", exits)
    flow = parse_spec(folders.planned(run).spec, FlowSpec)
    assert _together._computed(run, [flow], 1, Request()) == ([], "SystemExit: 0")


def test_a_locked_run_is_not_computed(planned):
    folders, run = planned
    with folders.holding(run):
        assert execute(folders.root, run) == "locked"
    assert execute(folders.root, run) == "done"


def test_a_run_of_other_code_is_refused(planned, monkeypatch, study_with):
    folders, run = planned
    monkeypatch.setattr("mesascope.studies.sweeps._run_id._own_code", lambda: "0+other")
    with pytest.raises(RecordError, match="planned with other code than there is here; install the same"):
        execute(folders.root, run)
    assert folders.status(run) == "planned"
    # a sweep by the other code plans runs of its own
    result = sweep(study_of(study_with()), folders.root)
    assert (result.done, result.reused) == (1, 0) and result.ids != (run,)


def test_plugins_that_only_a_plan_names_are_not_executed(planned, tmp_path):
    folders, run = planned
    trace, theirs = tmp_path / "executed", tmp_path / "theirs.py"
    theirs.write_text(f"open({str(trace)!r}, 'w').close()")
    plan = folders.planned(run)
    other = RunFolders.create(tmp_path / "store of others")
    other.plan(plan.model_copy(update={"spec": {**plan.spec, "plugins": [str(theirs)]}}))
    with pytest.raises(
        RecordError,
        match=r"planned with plugins that the study does not name: .*theirs\.py; remove its folder",
    ):
        execute(other.root, run)
    assert not trace.exists() and other.status(run) == "planned"
    with pytest.raises(
        RecordError, match="planned with other"
    ):  # the study names it: it is read, and means another run
        execute(other.root, run, Request(plugins=frozenset([str(theirs)])))
    assert trace.exists()


def test_ctrl_c_records_nothing(planned, monkeypatch):
    folders, run = planned

    def interrupted(*_):
        raise ValueError("what compiled code makes of an interrupt")

    monkeypatch.setattr(_execute, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(folders.root, run, Request(stopped=lambda: True))
    assert folders.status(run) == "planned"


def test_errors_of_files_are_tried_again_and_recorded_in_the_end(planned, monkeypatch, study_with):
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


def test_a_record_that_cannot_be_read_is_read_again(planned, monkeypatch, study_with):
    """As happens for a moment on a network file system; if it stays unreadable, the sweep ends with an error."""
    folders, run = planned
    real, asked = RunFolders.reusable, []

    def unreadable(*of):
        asked.append(of)
        if len(asked) == 1 or gone:
            raise UnreadableError("cannot read run.json: Stale file handle") from OSError(
                116, "Stale file handle"
            )
        return real(*of)

    with monkeypatch.context() as patch:
        gone = True
        patch.setattr(RunFolders, "reusable", unreadable)
        with pytest.raises(
            SweepError, match=r"Stale file handle; runs that have ended are kept, and the same command"
        ):
            sweep(study_of(study_with()), folders.root)
        gone = False
        asked.clear()
        assert sweep(study_of(study_with()), folders.root).done == 1
    assert folders.finished(run).attempts == 1


def test_a_store_that_was_moved_ends_the_sweep_and_is_not_made_again(planned, monkeypatch, study_with):
    folders, _ = planned

    def gone(*_):
        folders.root.rename(folders.root.with_name("elsewhere"))
        raise RecordError("there is no store")

    monkeypatch.setattr(RunFolders, "finish", gone)
    with pytest.raises(SweepError, match=r"the store was moved or removed during the sweep$"):
        sweep(study_of(study_with()), folders.root)
    assert not [path for path in folders.root.rglob("*") if path.is_file()]


def test_a_disk_that_is_full_ends_the_sweep(planned, monkeypatch, study_with):
    folders, run = planned

    def full(*_):
        raise RecordError("cannot write run.json: No space left on device; free space")

    monkeypatch.setattr(RunFolders, "finish", full)
    with pytest.raises(SweepError, match=r"No space left on device.*the same command resumes"):
        sweep(study_of(study_with()), folders.root)
    assert folders.status(run) == "planned"


@pytest.mark.slow
def test_a_training_resumes_from_its_checkpoint(prompts_with, tmp_path, monkeypatch):
    base = prompts_with(steps=6, batch=4, held_out=8, record_every=2, checkpoint_every=2)
    study = study_of({"name": "t", "kind": "train", "base": base})
    whole = sweep(study, tmp_path / "whole")
    run = whole.ids[0]
    with open_or_make(tmp_path / "cut") as store:
        prepare(study, check(study), store)
    folders = RunFolders(tmp_path / "cut")
    # as after a kill: some checkpoints, and no record
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


def test_a_worker_switches_64_bits_on(planned):
    folders, run = planned
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    try:
        assert work(str(folders.root), [run], Request()) == ("done",)
    finally:
        jax.config.update("jax_enable_x64", before)


# The status of a study


def test_status_counts_runs_and_lists_drivers(planned, study_with):
    folders, run = planned
    with open_store(folders.root) as store:
        before = study_status(store, "a-study")
        assert (before.total, before.planned, before.running, before.drivers) == (1, 1, 0, ())
        with (
            announced(folders.root, "a-study", "local", "http://127.0.0.1:1/status", 1) as announcement,
            folders.holding(run),
        ):
            announcement._written = -10.0
            announcement.update(per_minute=30.0)
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
        (mine,) = (folders.root / "drivers").glob("*.json")
        host = json.loads(mine.read_text())["host"]
        left = mine.with_name("left-1-a-study.json")
        left.write_text(dead.model_copy(update={"host": host}).model_dump_json())
        assert len(drivers(folders.root, "a-study")) == 1
        assert not left.exists()
    with open_store(folders.root) as store:
        assert store.verify() == []


def test_a_driver_without_news_announces_itself_again(planned, monkeypatch):
    folders, _ = planned
    monkeypatch.setattr(_status, "_ANNOUNCE_AGAIN", 0.01)
    with announced(folders.root, "a-study", "in-process", None, 1):
        (mine,) = (folders.root / "drivers").glob("*.json")  # a temporary file may lie beside it
        mine.unlink()  # as another process does after a long silence
        end = time.monotonic() + 10
        while not mine.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
    time.sleep(0.05)
    assert not list((folders.root / "drivers").iterdir())


def test_silent_drivers_of_other_machines_are_removed(planned):
    folders, _ = planned
    far = Driver(study="a-study", host="far", pid=1, scheduler="local", dashboard=None, total=1)
    file = folders.root / "drivers" / "far-1-a-study.json"
    file.parent.mkdir()
    now = time.time()
    long = _status._SILENT + 10
    for silent, there in (
        (3 * _status._ANNOUNCE_AGAIN, 1),
        (long, 0),
        (-long, 0),
    ):  # the last: the clock was set back
        file.write_text(far.model_dump_json())
        os.utime(file, (now - silent, now - silent))
        assert len(drivers(folders.root, "a-study")) == there


def test_a_locked_folder_is_running(planned):
    folders, run = planned
    with folder_lock(folders.folder(run), "run"), open_store(folders.root) as store:
        assert study_status(store, "a-study").running == 1
