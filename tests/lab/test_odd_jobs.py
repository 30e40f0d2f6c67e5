"""Code of plugins that hangs, forks or ends in the processes that compute, and windows that ask without end."""

import subprocess
import sys
import time

import pytest

from mesascope.lab import _jobs, _workers
from mesascope.lab._jobs import Job, JobCancelledError, JobFailedError
from mesascope.lab._workers import Workers

WAIT = 120  # seconds: a process that imports jax starts within a few, on a machine that does other things too
PLUGIN = """
import os
import sys
import time

from mesascope.lab import _compute
from mesascope.lab._jobs import PROGRAMS


def add(name):
    PROGRAMS[name] = PROGRAMS["flow"]
    return lambda job: setattr(_compute, name, job)


@add("echo")
def echo(text, progress):
    return text


@add("hang")
def hang(progress):
    progress("hangs")
    while True:
        time.sleep(1)


@add("exit")
def leave(how, progress):
    (os._exit if how == "at once" else sys.exit)(0)


@add("fork")
def fork(progress):
    progress("one") if os.fork() else progress("two")
    return "one"


@add("leave a child")
def leave_a_child(file, progress):
    if (child := os.fork()) == 0:
        time.sleep(1000)
    with open(file, "w") as note:
        note.write(str(child))
    os._exit(0)
"""


# Its output ends when the process that computes has ended, too.
KILLED = """
import os, sys, time

from mesascope.lab import _workers
from mesascope.lab._jobs import Job

_workers.default_plugins = lambda: (sys.argv[1],)
heard = []
_workers.Workers("test").submit(Job("hang", {}, heard.append))
while not heard:
    time.sleep(0.01)
print(*heard, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    file = tmp_path_factory.mktemp("plugin") / "odd_jobs.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture(scope="module")
def pools(plugin):
    """Pools whose processes know the jobs above; ended at last."""
    made = []

    def make(size):
        made.append(Workers("test", size))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_workers, "default_plugins", lambda: (plugin,))
        patch.setattr(_jobs, "_PATIENCE", 1.0)
        yield make
        for one in made:
            one.close()


@pytest.fixture(scope="module")
def pool(pools):
    return pools(1)


def done(pool, name, **arguments):
    return pool.submit(Job(name, arguments)).future.result(WAIT)


def hanging(pool, owner=None):
    heard = []
    job = pool.submit(Job("hang", {}, heard.append, owner=owner))
    while not heard:  # before that it would still stop when it is asked to
        time.sleep(0.01)
    return job


@pytest.mark.slow
@pytest.mark.parametrize("how", ["at once", "by an exception"])
def test_a_job_that_ends_its_process_is_reported(pool, how):
    with pytest.raises(JobFailedError, match="its process ended"):
        done(pool, "exit", how=how)
    assert done(pool, "echo", text=how) == how


@pytest.mark.slow
def test_a_forked_process_answers_nothing(pool):
    messages = []
    assert pool.submit(Job("fork", {}, messages.append)).future.result(WAIT) == "one"
    for text in ("a", "b"):
        assert pool.submit(Job("echo", {"text": text}, messages.append)).future.result(WAIT) == text
    assert messages == ["one"]


@pytest.mark.slow
def test_a_process_that_is_lost_is_noticed_although_its_child_lives_and_the_child_ends_too(pool, tmp_path):
    with pytest.raises(JobFailedError, match="its process ended"):
        done(pool, "leave a child", file=str(tmp_path / "child"))
    child = int((tmp_path / "child").read_text())
    end = time.monotonic() + WAIT
    while _lives(child):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert done(pool, "echo", text="next") == "next"


def _lives(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # of nobody who waits for it
    except OSError:
        return False


@pytest.mark.slow
def test_a_job_that_was_dropped_and_hangs_is_ended(pool):
    job = hanging(pool)
    job.drop()
    with pytest.raises(JobCancelledError):
        job.future.result(WAIT)
    assert done(pool, "echo", text="next") == "next"


@pytest.mark.slow
def test_a_job_that_hangs_ends_after_its_server_was_killed(plugin):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, plugin], stdout=subprocess.PIPE, text=True, timeout=WAIT
    )
    assert (killed.stdout, killed.returncode) == ("hangs\n", -9)


@pytest.mark.slow
def test_jobs_that_a_window_has_dropped_leave_a_process_to_other_windows(pools, monkeypatch):
    monkeypatch.setattr(_jobs, "_PATIENCE", 1000.0)
    pool = pools(2)
    first = hanging(pool, owner="greedy")
    first.drop()
    second = pool.submit(Job("hang", {}, owner="greedy"))
    other = pool.submit(Job("echo", {"text": "other"}, owner="other"))
    assert other.future.result(WAIT) == "other"
    assert not second.started
    first.cancel()
    while not second.started:
        time.sleep(0.01)
    second.cancel()


@pytest.mark.slow
def test_a_window_that_asks_without_end_leaves_no_queue(pool):
    running = hanging(pool)
    asked = [pool.submit(Job("echo", {"text": "old"}, owner="greedy"))]
    for _ in range(1000):
        asked[-1].drop()
        asked.append(pool.submit(Job("echo", {"text": "new"}, owner="greedy")))
    assert sum(map(len, pool._waiting.values())) == 1
    running.cancel()
    assert asked[-1].future.result(WAIT) == "new"
    assert all(isinstance(job.future.exception(0), JobCancelledError) for job in asked[:-1])
