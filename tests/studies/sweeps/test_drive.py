"""What a driver makes of workers that are lost, told by one that loses them at will."""

import pytest

from mesascope.records import RunFolders, open_store
from mesascope.studies import StudySpec, SweepError, execute, parse_spec
from mesascope.studies.sweeps._attempts import begin_attempt
from mesascope.studies.sweeps._drive import Drive
from mesascope.studies.sweeps._drivers import announced
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare
from mesascope.studies.sweeps._runners import Report


class Losing:
    """Does with a run what the next of its plans says, and reports its worker as lost; without plans, computes it."""

    dashboard, started = None, True

    def __init__(self, root, plans):
        self.root, self.plans, self.given = root, plans, []

    def room(self):
        return 1 - len(self.given)

    def give(self, run):
        self.given.append(run)

    def reports(self, seconds):
        run = self.given.pop()
        if not self.plans:
            return [Report(run, execute(self.root, run))]
        self.plans.pop(0)(self.root, run)
        return [Report(run, None, "KilledWorker: its worker process died", lost=True)]

    def cancel(self):
        self.given.clear()


def waits(root, run):
    """The run only waited at the worker."""


def begins(root, run):
    """The worker dies in the middle."""
    begin_attempt(RunFolders(root).folder(run))


@pytest.fixture
def driven(study_with, tmp_path):
    """The drive of one run, with these plans."""

    def drive(*plans, retries=1):
        study = parse_spec(study_with(), StudySpec)
        with open_or_make(tmp_path / "s") as store:
            prepared = prepare(study, check(study, lambda *_: None), store, lambda *_: None)
            runner = Losing(tmp_path / "s", list(plans))
            with announced(tmp_path / "s", "a-study", "local", None, 1) as announcement:
                found = Drive(prepared, store, runner, "me", retries, announcement, lambda _: None)
                found.run()
        return found

    return drive


def test_a_run_is_tried_again(driven, tmp_path):
    found = driven(begins)
    assert (len(found.done), found.failed) == (1, {})
    assert RunFolders(tmp_path / "s").finished(*found.done).attempts == 2


def test_a_run_that_kills_its_workers_has_failed(driven, tmp_path):
    found = driven(begins, begins)
    ((run, error),) = found.failed.items()
    assert error.startswith("KilledWorker: its worker process died 2 times while it computed this")
    assert RunFolders(tmp_path / "s").finished(run).outcome == {"failure": "machine"}
    with open_store(tmp_path / "s") as store:
        assert store.count(["state=failed"]) == 1 and store.verify() == []


def test_a_run_that_waited_at_lost_workers_is_not_blamed(driven):
    assert len(driven(*[waits] * 10, retries=0).done) == 1


def test_a_worker_that_is_lost_after_its_work_has_done_it(driven, tmp_path):
    found = driven(lambda root, run: execute(root, run, driver="me"), retries=0)
    assert (len(found.done), found.reused, found.failed) == (1, set(), {})
    assert RunFolders(tmp_path / "s").finished(*found.done).attempts == 1


def test_what_somebody_else_has_done_is_reused(driven):
    found = driven(lambda root, run: execute(root, run, driver="other"))
    assert (found.done, len(found.reused)) == (set(), 1)


def test_workers_that_never_begin_end_the_sweep(driven):
    with pytest.raises(SweepError, match="workers die before they begin a run"):
        driven(*[waits] * 30)
