import asyncio
import os
import signal
import time

import numpy as np
import pytest

from mesascope.lab._compute_claims import rerun
from mesascope.lab._jobs import Job, JobCancelledError, JobFailedError
from mesascope.lab._page import ExpertPage
from mesascope.lab._session import Lab, Session
from mesascope.lab._setting import read_setting
from mesascope.lab._worker import _outcome
from mesascope.lab._workers import Workers
from mesascope.records import folder_lock
from mesascope.studies import SpecError

SETTING = {
    "dim": 2,
    "horizon": 6,
    "law": {"kind": "gaussian", "scale": 1.0},
    "init": {"kind": "diagonal", "a": 0.5, "b": 0.2},
}
SPEC = read_setting(SETTING)
# c* = 3 / (15 + 3 (1 + 1/2 + 1/3 + 1/4) / 4) for κ1 = 3, κ2 = 15, κ3 = 3 and T = 6
LIMIT = 3 / (15 + 3 * (25 / 12) / 4)
WAIT = 120  # seconds: a program is compiled within a few, on a machine that does other things too


@pytest.fixture(scope="module")
def worker():
    """One process, whom everybody has to wait for."""
    pool = Workers("test")
    yield pool
    pool.close()


def done(worker, name, **arguments):
    return worker.submit(Job(name, arguments)).future.result(WAIT)


@pytest.fixture(scope="module")
def path(worker):
    return done(worker, "flow", spec=SPEC)


@pytest.mark.slow
def test_facts_of_a_law_are_those_of_the_paper(worker):
    facts = done(worker, "facts", spec=SPEC)
    assert {name: text for name, (_, text) in facts["moments"].items()} == {
        "m2": "1",
        "kappa1": "3",
        "kappa2": "15",
        "kappa3": "3",
    }
    assert facts["ratio"] == (0.2, "1/5")
    assert facts["gap"][1] == "2/5"
    assert facts["limit"][0] == pytest.approx(LIMIT, rel=1e-15)
    assert facts["answers"]["4.1"][0]
    assert not facts["answers"]["4.2"][0]
    sequences = facts["sequences"]
    assert sequences.shape == (4, 6, 2)
    # x_{t+1} = W x_t with a unitary diagonal W: coordinates keep their size
    assert np.allclose(np.abs(sequences), np.abs(sequences[:, :1]))


@pytest.mark.slow
def test_a_flow_is_the_closed_form_and_ends_at_its_limit(path):
    assert path["succeeded"]
    assert path["products"].shape == (96, 2)
    # the solver's own error along the way
    assert np.allclose(path["products"], path["theory"]["product"][:, None], rtol=0, atol=1e-8)
    # the flow rests where the gradient is 1e-10 of its curvature
    assert path["products"][-1] == pytest.approx([LIMIT] * 2, abs=1e-8)
    assert path["loss"][0] > path["loss"][-1]
    assert path["w_kq"].shape == (48, 4, 4)
    assert path["w_pv"].shape == (48, 2, 4)
    assert path["end"]["limit_product"] == pytest.approx(LIMIT)


def long_flow():
    """A flow of millions of steps; it reports progress, and can stop, after some thousand of them."""
    return Job("flow", {"spec": read_setting({**SETTING, "until": 1e6, "max_steps": 10**8})})


def unresponsive():
    """A descent that cannot stop within a million steps."""
    return Job("descent", {"spec": SPEC, "samples": 64, "rate": 1e-9, "steps": 10**8, "seed": 0})


@pytest.mark.slow
def test_a_flow_that_was_dropped_on_its_way_is_no_result(worker, path):
    # a flow that is to stop keeps what it has, which must not pass for where training goes
    job = long_flow()
    job.progress = lambda text: job.drop() if "flow time" in text else None
    with pytest.raises(JobCancelledError):
        worker.submit(job).future.result(WAIT)


@pytest.mark.slow
def test_with_a_step_that_grows_theory_is_silent_about_endless_contexts(worker):
    facts = done(worker, "facts", spec=read_setting({**SETTING, "rho": "1"}))
    assert facts["limit"][0] is not None
    assert facts["gap"][0] is None and "ρ_t = 1" in facts["gap"][1]
    assert facts["ratio"] == facts["gap"]


@pytest.mark.slow
@pytest.mark.parametrize("rho", ["t-1", "1"])
def test_what_the_layer_does_is_what_theory_says(worker, path, rho):
    setting = {**SETTING, "rho": rho}
    behaviour = done(
        worker, "behaviour", spec=read_setting(setting), w_kq=path["w_kq"][-1], w_pv=path["w_pv"][-1]
    )
    # five standard errors: sampled, of sixth powers of normal numbers
    assert np.all(np.abs(behaviour["error"] - behaviour["risk"]) < 5 * behaviour["error_se"])
    slope, error = behaviour["correlation"]
    assert abs(slope - behaviour["expected_correlation"][0]) < 5 * error
    ratio, error = behaviour["ratio"]
    assert ratio == pytest.approx(behaviour["ratios"].mean())  # all entries of a normal token are non-zero
    assert abs(ratio - behaviour["expected_ratio"][0]) < 5 * error
    sensitivity = behaviour["sensitivity"]
    assert sensitivity["sizes"].shape == (5, 2)
    # it is one step of descent with this step size, in every derivative
    assert sensitivity["cosine"] == pytest.approx((1, 1, 1), abs=1e-9)


@pytest.mark.slow
def test_identify_names_one_step_of_descent(worker, path):
    messages = []
    weights = {"w_kq": path["w_kq"][-1], "w_pv": path["w_pv"][-1]}
    arguments = {
        "spec": SPEC,
        **weights,
        "learners": ["zero", "gradient-descent", "ridge"],
        "tasks": 80,
    }
    answer = worker.submit(Job("identification", arguments, messages.append)).future.result(WAIT)
    assert (answer["verdict"], answer["candidates"]) == ("identified", ["gradient-descent"])
    assert answer["ranking"][0]["hyperparameters"]["step_size"] == pytest.approx(LIMIT, abs=1e-6)
    assert messages[0].endswith("ask the model")


@pytest.mark.slow
def test_sampled_training_starts_at_the_start(worker):
    run = done(worker, "descent", spec=SPEC, samples=64, rate=0.01, steps=20, seed=0)
    assert run["products"][0] == pytest.approx([0.1, 0.1])
    assert run["times"][-1] == pytest.approx(0.2)
    assert run["loss"][-1] < run["loss"][0]


def test_an_error_is_reported_at_its_field_and_the_worker_goes_on(worker):
    law = {"kind": "studentt", "df": 5, "scale": 1}
    with pytest.raises(SpecError, match="df > 6") as raised:
        done(worker, "facts", spec=read_setting({**SETTING, "law": law}))
    assert raised.value.path[0] == "law"
    assert done(worker, "facts", spec=SPEC)["ratio"] == (0.2, "1/5")


@pytest.mark.parametrize(
    ("scale", "a", "field"), [(1e26, 1e6, "init"), (1e50, 1e6, "law"), (1e50, 0.5, "law")]
)
def test_what_leaves_double_precision_is_reported_with_its_cause(worker, path, scale, a, field):
    setting = {**SETTING, "law": {"kind": "gaussian", "scale": scale}, "max_steps": 2048}
    with pytest.raises(SpecError, match="leaves double precision") as raised:
        done(worker, "flow", spec=read_setting({**setting, "init": {"kind": "diagonal", "a": a, "b": 0.5}}))
    assert raised.value.path == (field,)


def test_a_claim_is_checked_by_one_at_a_time(tmp_path):
    with folder_lock(tmp_path, "check-zheng2024-theorem-4.1"):
        with pytest.raises(ValueError, match="another window is checking it now; wait"):
            rerun("zheng2024/theorem-4.1", str(tmp_path), print)
        assert not (tmp_path / "quick").exists()


def test_numbers_beyond_double_precision_are_reported_in_our_words():
    kind, text, path = _outcome(lambda progress: float(10**400), {}, print)
    assert (kind, path) == ("failed", ()) and text.startswith("numbers leave double precision; take smaller")


@pytest.mark.slow
def test_a_cancelled_job_stops_within_seconds_and_one_dropped_in_the_queue_never_runs(worker):
    job = worker.submit(unresponsive())
    waiting, after = worker.submit(long_flow()), worker.submit(Job("facts", {"spec": SPEC}))
    waiting.drop()
    time.sleep(0.5)
    begin = time.monotonic()
    job.cancel()
    for unwanted in (job, waiting):
        with pytest.raises(JobCancelledError):
            unwanted.future.result(WAIT)
    assert time.monotonic() - begin < 10  # two seconds of grace, and the end of a process
    assert after.future.result(WAIT)["ratio"] == (0.2, "1/5")


@pytest.mark.slow
def test_a_lost_process_is_reported_and_replaced(worker):
    job = worker.submit(long_flow())
    (only,) = worker._workers
    while not job.started or only._process is None or not only._process.is_alive():
        time.sleep(0.05)
    time.sleep(0.2)
    os.kill(only._process.pid, signal.SIGKILL)
    with pytest.raises(JobFailedError, match="its process ended"):
        job.future.result(WAIT)
    assert done(worker, "facts", spec=SPEC)["ratio"] == (0.2, "1/5")


def test_owners_are_served_in_turn(worker):
    order = []

    def ask(owner):
        job = Job("facts", {"spec": SPEC}, owner=owner)
        job.future.add_done_callback(lambda future: order.append(owner))
        return job

    first = worker.submit(long_flow())
    jobs = [worker.submit(ask(owner)) for owner in ("many", "many", "many", "one")]
    first.drop()
    for job in jobs:
        job.future.result(WAIT)
    assert order == ["many", "one", "many", "many"]


def test_a_job_that_nobody_waits_for_any_more_keeps_no_other_waiting(worker):
    first, asked = worker.submit(long_flow()), [Job("facts", {"spec": SPEC}) for _ in range(3)]
    for job in asked:
        worker.submit(job)
    assert asked[0].future.cancel()  # as asyncio does with the future of a task that is cancelled
    asked[1].drop()
    first.drop()
    assert asked[2].future.result(WAIT)["ratio"] == (0.2, "1/5")


@pytest.mark.slow
def test_a_second_process_takes_what_would_wait_for_a_long_job():
    pool = Workers("test", 2)
    try:
        long = pool.submit(long_flow())
        while not long.started:
            time.sleep(0.02)
        answer = pool.submit(Job("facts", {"spec": SPEC}))
        assert answer.future.result(WAIT)["ratio"] == (0.2, "1/5")
        assert long.started and not long.future.done() and not pool.idle
        long.cancel()
        with pytest.raises(JobCancelledError):
            long.future.result(WAIT)
    finally:
        pool.close()
    assert pool.idle


@pytest.fixture
def session(worker):
    """A window of a lab that has one process."""
    lab = Lab([])
    lab.close()
    lab._pools = {"quick": worker}
    return Session(lab, "")


def test_a_waiting_job_is_dropped_at_once_when_it_is_cancelled(session, worker):
    async def scenario():
        running = worker.submit(long_flow())
        while not running.started:
            await asyncio.sleep(0.02)
        asked = asyncio.ensure_future(session.compute("facts", spec=SPEC))
        await asyncio.sleep(0)
        assert session.progress == {"facts": "waiting for its turn"}
        session.cancel("facts")
        assert session.progress == {}
        running.drop()
        assert await asked is None
        assert session.current("facts") is None

    asyncio.run(scenario())


def test_the_newest_question_of_a_window_is_answered(session, worker):
    async def scenario():
        running = worker.submit(long_flow())
        specs = [read_setting({**SETTING, "law": {"kind": "constant", "value": 1}}), SPEC]
        asked = [asyncio.ensure_future(session.compute("facts", spec=one)) for one in specs]
        await asyncio.sleep(0)
        running.drop()
        first, second = await asyncio.gather(*asked)
        assert first is None
        assert second["ratio"] == (0.2, "1/5")
        assert session.progress == {}

    asyncio.run(scenario())


def test_a_text_is_taken_at_once_and_read_when_awaited(session):
    page = ExpertPage.__new__(ExpertPage)
    page.session = session
    read = page.changed("init.a", "3"), page.changed("init.b", "4")
    assert (session.form["init.a"], session.form["init.b"]) == ("3", "4")
    for one in read:
        one.close()


def test_a_long_text_is_read_beside_the_event_loop(session):
    async def scenario():
        session.form |= {"law.kind": "empirical", "law.samples": " ".join(str(n / 7) for n in range(2000))}
        task, beats = asyncio.ensure_future(session.read_form()), 0
        while not task.done():
            await asyncio.sleep(0)
            beats += 1
        assert await task
        assert len(session.spec.law.samples.table) == 2000
        assert beats > 2  # one, if it was read at once
        # what was typed meanwhile is read by itself
        session.form["law.samples"] += " 1"
        late = asyncio.ensure_future(session.read_form())
        await asyncio.sleep(0)
        session.form["dim"] = "x"
        assert not await late
        assert len(session.spec.law.samples.table) == 2000 and session.errors == {}

    asyncio.run(scenario())
