"""Flows that are solved together: the numbers are the same as one by one, and each run has its own folder and failure."""

import os
import signal

import numpy as np
import pytest

from mesascope.records import RunFolders, open_store
from mesascope.studies import FlowSpec, Request, StudySpec, parse_spec, sweep
from mesascope.studies._flow import program_of
from mesascope.studies.sweeps import _together
from mesascope.studies.sweeps._attempts import begin_attempt, driver_deaths, why_unbatched
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare
from mesascope.studies.sweeps._together import batches, execute_together

STARTS = [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.fixture
def timed(study_with):
    """The mapping of a study of flows to one time, from these starts."""

    def make(starts=STARTS):
        base = {**study_with()["base"], "until": 2.0}
        return {"name": "timed", "kind": "flow", "base": base, "axes": [{"path": "init.a", "values": starts}]}

    return make


@pytest.fixture
def planned_flows(timed, tmp_path):
    """A store in which they are planned, and their ids."""
    study = parse_spec(timed(), StudySpec)
    with open_or_make(tmp_path / "s") as store:
        prepared = prepare(study, check(study), store)
    return RunFolders(tmp_path / "s"), prepared.left


@pytest.mark.slow
def test_batches_give_the_results_of_single_runs(timed, tmp_path):
    study = parse_spec(timed(), StudySpec)
    one = sweep(study, tmp_path / "one")
    four = sweep(study, tmp_path / "four", batch=4)
    assert (four.done, four.failed, four.ids) == (5, 0, one.ids)
    assert one.unbatched == four.unbatched == ()
    alone, together = RunFolders(tmp_path / "one"), RunFolders(tmp_path / "four")
    for run in one.ids:
        # the solver's relative error is 1e-11 a step; there are some dozens of steps
        first, second = alone.finished(run).outcome, together.finished(run).outcome
        for name in ("loss", "w_kq", "w_pv", "product", "time"):
            np.testing.assert_allclose(first[name], second[name], rtol=1e-9, atol=1e-12)
        assert first["steps"] == pytest.approx(second["steps"], abs=1)
        assert (first["result"], first["limit_product"]) == (second["result"], second["limit_product"])
        path = together.trajectory(run)
        assert float(path.time[0]) == 0 and float(path.time[-1]) == 2.0
        np.testing.assert_array_equal(path.w_kq[-1], second["w_kq"])
        np.testing.assert_allclose(path.loss[-1], alone.trajectory(run).loss[-1], rtol=1e-9)
    # the fifth was computed alone
    assert [together.finished(run).batch for run in one.ids] == [4, 4, 4, 4, 1]
    assert [alone.finished(run).batch for run in one.ids] == [1] * 5
    assert together.finished(one.ids[0]).attempts == 1
    with open_store(tmp_path / "four") as store:
        assert store.verify() == []
        assert store.count(["study=timed", "status=done"]) == 5
    # the same points are not computed again, whatever the batch
    assert sweep(study, tmp_path / "one", batch=4).reused == 5


@pytest.mark.slow
def test_an_incomplete_batch_is_filled_up(planned_flows, timed, tmp_path):
    """Three flows run in the program of four, not of a thousand, with the same bits as beside a fourth flow."""
    folders, runs = planned_flows
    assert execute_together(folders.root, runs[:3], Request(batch=1000)) == ("done",) * 3
    assert {folders.finished(run).batch for run in runs[:3]} == {4}
    four = sweep(parse_spec(timed(STARTS[:4]), StudySpec), tmp_path / "four", batch=4)
    assert list(four.ids) == runs[:4]
    for run in runs[:3]:
        assert folders.trajectory(run).identical(RunFolders(tmp_path / "four").trajectory(run))


@pytest.mark.slow
def test_a_flow_that_diverges_fails_alone(timed, tmp_path):
    result = sweep(parse_spec(timed([0.1, 1e120, 0.3, 0.4]), StudySpec), tmp_path / "s", batch=4)
    assert (result.done, result.failed) == (3, 1)
    assert result.failures[0].error.startswith("diverged: ")
    records = [RunFolders(tmp_path / "s").finished(run) for run in result.ids]
    assert [one.status for one in records] == ["done", "failed", "done", "done"]
    assert records[1].outcome["failure"] == "computation" and {one.batch for one in records} == {4}


@pytest.mark.slow
def test_a_batch_that_raises_is_run_again_one_by_one(planned_flows, monkeypatch):
    folders, runs = planned_flows

    def broken(specs):
        assert len(specs) == 5
        assert all(folders.running(run) for run in runs)
        raise RuntimeError("one of them has broken all")

    monkeypatch.setattr(_together, "compute_together", broken)
    assert execute_together(folders.root, runs, Request(batch=5)) == ("done",) * 5
    records = [folders.finished(run) for run in runs]
    assert {(one.batch, one.attempts) for one in records} == {(1, 2)}
    assert all(driver_deaths(folders.folder(run), 0) == 0 for run in runs)
    assert {why_unbatched(folders.folder(run), "") for run in runs} == {
        "RuntimeError: one of them has broken all"
    }
    assert {why_unbatched(folders.folder(run), "another driver") for run in runs} == {None}


@pytest.mark.slow
def test_a_sweep_reports_runs_that_it_had_to_compute_one_by_one(timed, tmp_path, monkeypatch):
    def broken(specs):
        raise RuntimeError("one of them has broken all")

    monkeypatch.setattr(_together, "compute_together", broken)
    result = sweep(parse_spec(timed(), StudySpec), tmp_path / "s", batch=4)
    assert (result.done, result.failed) == (5, 0)
    (unbatched,) = result.unbatched  # the fifth was alone from the beginning
    assert (unbatched.error, unbatched.count) == ("RuntimeError: one of them has broken all", 4)
    assert unbatched.run in result.ids[:4]
    records = [RunFolders(tmp_path / "s").finished(run) for run in result.ids]
    assert [(one.attempts, one.batch) for one in records] == [(2, 1)] * 4 + [(1, 1)]


def test_ctrl_c_records_nothing_of_a_batch(planned_flows, monkeypatch):
    folders, runs = planned_flows

    def interrupted(specs):
        raise ValueError("what compiled code makes of an interrupt")

    monkeypatch.setattr(_together, "compute_together", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute_together(folders.root, runs, Request(batch=5, stopped=lambda: True))
    assert {folders.status(run) for run in runs} == {"planned"}


@pytest.mark.slow
def test_runs_that_are_done_or_locked_are_skipped(planned_flows):
    folders, runs = planned_flows
    execute_together(folders.root, runs[:1], Request(batch=4))
    before = folders.finished(runs[0])
    with folders.holding(runs[2]):
        assert execute_together(folders.root, runs, Request(batch=4)) == (
            "cached",
            "done",
            "locked",
            "done",
            "done",
        )
    assert folders.finished(runs[0]) == before
    assert folders.status(runs[2]) == "planned"


@pytest.mark.slow
def test_a_kill_loses_only_runs_without_a_record(planned_flows, monkeypatch):
    folders, runs = planned_flows
    finish, written = RunFolders.finish, []

    def killed(self, record, data=None):
        if len(written) == 2:
            raise SystemExit  # leaves the files of a kill
        written.append(record.id)
        return finish(self, record, data)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolders, "finish", killed)
        patch.setattr(_together, "abandon_attempt", lambda *_: None)
        with pytest.raises(SystemExit):
            execute_together(folders.root, runs[:4], Request(batch=4, in_driver=True))
    assert [folders.status(run) for run in runs] == ["done"] * 2 + ["planned"] * 3
    # none of them counts as the cause, and the next time each is alone: together they might kill again
    assert [driver_deaths(folders.folder(run), 0) for run in runs] == [0] * 5
    assert batches(runs[2:], dict.fromkeys(runs, "p"), folders, 4) == [(run,) for run in runs[2:]]


# Which runs go together


def test_batches_keep_the_order_and_put_one_program_together(tmp_path):
    folders = RunFolders.create(tmp_path / "s")
    runs = [f"{i:032x}" for i in range(7)]
    programs = dict(zip(runs, "ababa", strict=False))
    expected = [(runs[0], runs[2]), (runs[1], runs[3]), (runs[4],), (runs[5],), (runs[6],)]
    assert batches(runs, programs, folders, 2) == expected
    assert batches(runs, {}, folders, 2) == [(run,) for run in runs]
    folders.folder(runs[0]).mkdir(parents=True)
    begin_attempt(folders.folder(runs[0]))
    assert batches(runs[:3], programs, folders, 2) == [(runs[0],), (runs[1],), (runs[2],)]


def test_flows_of_one_program(study_with):
    base = {**study_with()["base"], "until": 2.0}

    def program(**changes):
        return program_of(parse_spec({**base, **changes}, FlowSpec))

    first = program()
    gaussian = {"kind": "gaussian", "scale": "1/3"}
    for same in ({"until": 3}, {"init": {"kind": "gaussian", "scale": 1, "seed": 3}}, {"law": gaussian}):
        assert program(**same) == first
    others = [{"dim": 3}, {"horizon": 6}, {"law": "rademacher"}, {"mask": "off-diagonal"}, {"rho": "1"}]
    others += [{"solver": "kvaerno5"}, {"max_steps": 5}, {"engine": "enumeration"}, {"weights": [1, 0, 1]}]
    found = {program(**other) for other in others}
    assert len(found) == len(others) and not found & {first, None}
    assert program(until="steady-state") is None
    assert program(until=None, method="descent", lr=0.1, steps=3) is None


def test_batches_of_other_runs_are_refused(study_with, many_losses, tmp_path):
    for study in (study_with(), many_losses(2)):
        with pytest.raises(ValueError, match="has no flow to a given time"):
            sweep(parse_spec(study, StudySpec), tmp_path / "s", batch=2)
    for batch in (0, 513, 2.5):
        with pytest.raises(ValueError, match=f"batch must be an integer from 1 to 512, got {batch}"):
            sweep(parse_spec(study_with(), StudySpec), tmp_path / "s", batch=batch)
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_worker_is_killed_in_a_batch_and_every_run_is_done(command, timed, tmp_path, begun):
    options = ("--scheduler", "local", "--workers", 1, "--batch", 4)
    sweep = command(timed([0.1 + 0.01 * i for i in range(24)]), tmp_path / "s", *options)
    cut = set()

    def killed():
        """Stop the worker, see whether it computes a batch, and if so kill it."""
        for worker in {pid for pids in begun(sweep.store).values() for pid in pids}:
            os.kill(worker, signal.SIGSTOP)
            ended = {file.parent.name for file in sweep.ended_runs()}
            computed = {run for run, pids in begun(sweep.store).items() if pids} - ended
            if len(computed) == 4:
                cut.update(computed)
            os.kill(worker, signal.SIGKILL if cut else signal.SIGCONT)
        return cut

    sweep.until(killed)
    status, result, err = sweep.end()
    assert status == 0 and result["done"] == 24, err
    records = [RunFolders(sweep.store).finished(run) for run in result["ids"]]
    # the runs of the lost batch are computed alone afterwards, and no other run twice
    for one in records:
        assert (one.attempts, one.batch) == ((2, 1) if one.id in cut else (1, 4))
    with open_store(sweep.store) as store:
        assert store.count(["status=done"]) == 24 and store.verify() == []
