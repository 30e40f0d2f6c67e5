"""How a driver handles lost workers, with a runner that loses them as planned, and a database that does not answer."""

import threading

import pytest

from mesascope.records import RecordError, RunFolders, Store, open_store
from mesascope.studies import Request, StudySpec, SweepError, execute, parse_spec, sweep
from mesascope.studies.sweeps import _drive, _index_writer
from mesascope.studies.sweeps._attempts import begin_attempt
from mesascope.studies.sweeps._drive import Drive
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare
from mesascope.studies.sweeps._runners import Report
from mesascope.studies.sweeps._status import announced


class Losing:
    """A runner that follows its next plan with a run, and reports its worker as lost; without plans it computes the run."""

    dashboard = None

    def __init__(self, root, plans, has_workers):
        self.root, self.plans, self.has_workers, self.tasks = root, plans, has_workers, []

    def free(self):
        return 1 - len(self.tasks)

    def submit(self, runs):
        self.tasks.append(runs)

    def reports(self, seconds):
        if not self.has_workers:  # the first comes late
            self.has_workers = True
            return []
        runs = self.tasks.pop()
        if not self.plans:
            return [Report(runs, tuple(execute(self.root, run) for run in runs))]
        plan = self.plans.pop(0)
        for run in runs:
            plan(self.root, run)
        return [Report(runs, None, "KilledWorker: its worker process died", lost=True)]

    def cancel(self):
        self.tasks.clear()


def waits(root, run):
    """The worker dies while the run waits there."""


def begins(root, run):
    """The worker dies while it computes the run."""
    begin_attempt(RunFolders(root).folder(run))


@pytest.fixture
def driven(study_with, tmp_path):
    """Drive one task with these plans."""

    def drive(*plans, retries=1, has_workers=True, tell=lambda _: None, **changes):
        study = parse_spec(study_with(**changes), StudySpec)
        with open_or_make(tmp_path / "s") as store:
            prepared = prepare(study, check(study), store)
            runner = Losing(tmp_path / "s", list(plans), has_workers)
            with announced(tmp_path / "s", "a-study", "local", None, 1) as announcement:
                tasks = [tuple(prepared.left)]
                found = Drive(prepared, tasks, store, runner, "me", retries, announcement, tell)
                found.run()
        return found

    return drive


@pytest.mark.slow
def test_a_run_is_tried_again(driven, tmp_path):
    found = driven(begins)
    assert (len(found.done), found.failed) == (1, {})
    assert RunFolders(tmp_path / "s").finished(*found.done).attempts == 2


def test_a_sweep_without_workers_says_that_it_waits_for_them(driven):
    told = []
    assert len(driven(has_workers=False, tell=told.append).done) == 1
    stages = [(one.done, one.stage) for one in told]
    assert stages[0] == (0, "wait for workers") and stages[-1] == (1, "run")
    assert "wait for workers" not in dict(stages[stages.index((0, "run")) :]).values()


def test_a_run_that_kills_its_workers_has_failed(driven, tmp_path):
    found = driven(begins, begins)
    ((run, error),) = found.failed.items()
    assert error.startswith("KilledWorker: its worker process died 2 times while it computed this")
    assert RunFolders(tmp_path / "s").finished(run).outcome == {"failure": "machine"}
    with open_store(tmp_path / "s") as store:
        assert store.count(["status=failed"]) == 1 and store.verify() == []


def test_a_run_that_waited_at_lost_workers_is_not_blamed(driven):
    assert len(driven(*[waits] * 10, retries=0).done) == 1


def test_a_run_that_was_recorded_before_its_worker_was_lost_is_done(driven, tmp_path):
    found = driven(lambda root, run: execute(root, run, Request(driver="me")), retries=0)
    assert (len(found.done), found.reused, found.failed) == (1, set(), {})
    assert RunFolders(tmp_path / "s").finished(*found.done).attempts == 1


def test_runs_of_another_driver_are_reused(driven):
    found = driven(lambda root, run: execute(root, run, Request(driver="other")))
    assert (found.done, len(found.reused)) == (set(), 1)


def test_runs_that_were_together_at_a_lost_worker_are_not_blamed(driven, tmp_path):
    """They are tried again one by one, which shows the one that kills its worker."""
    found = driven(begins, retries=0, axes=[{"path": "init.a", "values": [0.1, 0.2, 0.3]}])
    assert (len(found.done), found.failed) == (3, {})
    folders = RunFolders(tmp_path / "s")
    assert {folders.finished(run).attempts for run in found.done} == {2}


def test_the_run_of_a_batch_that_kills_its_workers_is_found(driven, tmp_path):
    found = driven(begins, begins, retries=0, axes=[{"path": "init.a", "values": [0.1, 0.2, 0.3]}])
    assert (len(found.done), len(found.failed)) == (2, 1)


def test_workers_that_never_begin_end_the_sweep(driven):
    with pytest.raises(SweepError, match="workers die before they begin a run"):
        driven(*[waits] * 30)


class Hanging:
    """A database that takes plans, but hangs when a run has ended, until it is released; then it answers or fails."""

    def __init__(self, monkeypatch, answers):
        self.asked, self.released = threading.Event(), threading.Event()
        self.enter, self.answers = Store.enter, answers
        monkeypatch.setattr(_index_writer, "_EVERY", 0.0)
        monkeypatch.setattr(Store, "enter", lambda store, runs: self(store, set(runs)))

    def __call__(self, store, runs):
        if any(store.folders.status(run) == "done" for run in runs):
            self.asked.set()
            assert self.released.wait(20), "the sweep waits for the database"
            if not self.answers:
                raise RecordError("the server has not answered")
        self.enter(store, runs)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [True, False])
def test_a_database_that_hangs_does_not_stop_the_sweep(many_losses, tmp_path, monkeypatch, answers):
    def progress(now):
        if now.done == now.total == now.values.get("done"):
            assert database.asked.wait(20)
            database.released.set()

    with monkeypatch.context() as patched:
        database = Hanging(patched, answers)
        result = sweep(parse_spec(many_losses(4), StudySpec), tmp_path / "s", progress=progress)
    assert result.done == 4 and result.succeeded
    assert result.not_indexed == (None if answers else "the server has not answered")
    with open_store(tmp_path / "s") as store:
        assert store.count(["status=done"]) == 4 and store.verify() == []


def test_a_sweep_that_is_stopped_does_not_wait_for_a_database_that_hangs(many_losses, tmp_path, monkeypatch):
    def progress(now):
        if now.values.get("done"):
            assert database.asked.wait(20)
            raise KeyboardInterrupt

    monkeypatch.setattr(_drive, "_CLOSE_INDEX", 0.01)
    database = Hanging(monkeypatch, answers=False)
    with pytest.raises(KeyboardInterrupt):
        sweep(parse_spec(many_losses(2), StudySpec), tmp_path / "s", progress=progress)
    database.released.set()
