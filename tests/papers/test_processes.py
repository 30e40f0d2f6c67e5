"""Claims that are checked in several processes."""

import os
import signal
from multiprocessing import active_children

import pytest

from mesascope.papers import _processes, claims, reproduce
from mesascope.papers._check import Job
from mesascope.papers._processes import sharing
from mesascope.records import RecordError, RunDirectory

# Of three modules, and quick.
CHOSEN = (
    "giannou2024/quadratic-convergence",
    "giannou2024/exact-law",
    "fu2024/root-two",
    "nichani2024/construction-counted",
)


def jobs(*ids):
    return [Job(claim, "small", "", None) for claim in claims(*ids)]


def test_claims_of_one_module_stay_together_and_a_verdict_appears_soon():
    found = sharing(jobs(*CHOSEN))
    groups = [{job.claim.id for job in group} for group in found]
    assert {"giannou2024/quadratic-convergence", "giannou2024/exact-law"} in groups and len(groups) == 3
    longest, shortest, *others = [sum(map(_processes._seconds, group)) for group in found]
    assert [longest, *others, shortest] == sorted([longest, *others, shortest], reverse=True)
    for group in found:
        assert group == sorted(group, key=_processes._seconds)
    assert sharing([]) == []


@pytest.mark.slow
def test_processes_give_the_records_of_one_process(tmp_path):
    events = []
    several = reproduce(*CHOSEN, out=tmp_path / "two", workers=2, watch=events.append)
    one = reproduce(*CHOSEN, out=tmp_path / "one")
    assert [record.id for record in several.records] == [claim.id for claim in claims(*CHOSEN)]
    for record, same in zip(several.records, one.records, strict=True):
        assert (record.outcome, record.setting, record.fingerprint, record.files) == (
            same.outcome,
            same.setting,
            same.fingerprint,
            same.files,
        )
    done = [event for event in events if event.kind == "done"]
    assert [event.index for event in done] == [0, 1, 2, 3] and {event.total for event in done} == {4}
    again = []
    assert reproduce(*CHOSEN, out=tmp_path / "two", workers=2, watch=again.append).records == several.records
    assert {event.kind for event in again} == {"reused"}


@pytest.mark.slow
def test_a_process_that_is_killed_costs_one_claim(tmp_path, monkeypatch):
    workers, killed = [], []
    begin = _processes._Worker.__init__

    def recorded(self, *arguments):
        begin(self, *arguments)
        workers.append(self)

    def watch(event):
        if event.kind == "start" and event.claim.id == CHOSEN[0] and not killed:
            (worker,) = (one for one in workers if one.left and one.left[0].claim.id == CHOSEN[0])
            os.kill(worker._process.pid, signal.SIGKILL)
            killed.append(worker)

    monkeypatch.setattr(_processes._Worker, "__init__", recorded)
    lost, *others = reproduce(*CHOSEN, out=tmp_path, workers=2, watch=watch).records
    assert killed and lost.failed and "was killed" in lost.details["error"]
    assert [record.failed for record in others] == [False] * 3
    assert not (tmp_path / "small" / "claims" / f"{lost.id}.json").exists()  # it is checked again


@pytest.mark.slow
def test_a_process_that_is_killed_between_two_groups_costs_no_claim(tmp_path, monkeypatch):
    begin, killed = _processes._Worker.begin, []

    def killed_before(worker, group):
        if worker.begun and not killed:
            worker._process.kill()
            worker._process.join()
            killed.append(group)
        begin(worker, group)

    monkeypatch.setattr(_processes._Worker, "begin", killed_before)
    told = []
    _processes.check_in_processes(
        [jobs(CHOSEN[2]), jobs(CHOSEN[3])], 1, RunDirectory(tmp_path), lambda *one: told.append(one)
    )
    assert killed == [jobs(CHOSEN[3])]
    assert [(id, one.failed) for word, id, one in told if word == "done"] == [
        (CHOSEN[2], False),
        (CHOSEN[3], False),
    ]


def test_processes_that_are_all_killed_before_a_claim_begins_come_to_an_end(tmp_path, monkeypatch):
    begin = _processes._Worker.begin

    def killed_before(worker, group):
        worker._process.kill()
        begin(worker, group)

    monkeypatch.setattr(_processes._Worker, "begin", killed_before)
    told = []
    _processes.check_in_processes(
        [jobs(*CHOSEN[:2]), jobs(CHOSEN[2])], 2, RunDirectory(tmp_path), lambda *one: told.append(one)
    )
    assert sorted(id for _, id, _ in told) == sorted(CHOSEN[:3])
    assert {record.details["error"] for _, _, record in told} == {
        "it was not checked: its process was killed before it began; out of memory?"
    }


@pytest.mark.slow
def test_an_interrupt_ends_the_processes_and_keeps_what_is_finished(tmp_path):
    def watch(event):
        if event.kind == "done":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(*CHOSEN, out=tmp_path, workers=2, watch=watch)
    assert not active_children()
    assert len(list(tmp_path.glob("small/claims/*/*.json"))) >= 1
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
def test_a_record_that_cannot_be_written_ends_all(tmp_path):
    def watch(event):
        place = tmp_path / "small" / "claims"
        if not place.exists():
            place.write_text("in the way")

    with pytest.raises(RecordError, match="claims"):
        reproduce(*CHOSEN, out=tmp_path, workers=2, watch=watch)
