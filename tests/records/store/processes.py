"""What other processes do to a store in the tests: `python processes.py` forks one for every line that it reads.

Forking a process that has imported everything takes milliseconds, starting one a second. A line is `KILLABLE|WRITER ARGUMENTS`;
the answer is the pid, or, for what is waited for, the exit status.
"""

import hashlib
import os
import sys
from itertools import count

from mesascope.records import PlannedRun, RunFolders, RunRecord, open_store, provenance

FROM = provenance()


def planned(number, **spec):
    run = hashlib.sha256(f"run {number}".encode()).hexdigest()[:32]
    spec = {"dim": 5, "init": {"kind": "diagonal", "a": number / 10, "b": 0.5}, "seed": number} | spec
    return PlannedRun(id=run, kind="flow", spec=spec, code="code-1")


def ended(plan, outcome=None, error=None, **more):
    facts = {
        "started": "2026-01-01T00:00:00Z",
        "ended": f"2026-01-01T00:{plan.spec['seed'] % 60:02}:00Z",
        "seconds": 0.5,
    }
    return RunRecord(
        **plan.model_dump(),
        status="done" if error is None else "failed",
        outcome={"loss": 0.5 * plan.spec["seed"]} if outcome is None else outcome,
        error=error,
        provenance=FROM,
        **{**facts, **more},
    )


def compute(folders, number, length=50):
    """Plan, hold and finish a run, as a worker does."""
    import numpy as np

    plan = planned(number)
    folders.plan(plan)
    with folders.holding(plan.id):
        data = {"time": ("time", np.arange(float(length))), "loss": ("time", np.linspace(1, number, length))}
        folders.finish(ended(plan), data)
    return plan.id


def nothing():
    """Let the server notice which processes have ended."""


def write_until_killed(root, first):
    """Compute and enter runs, in files of many sizes, and studies of them, until a kill ends it."""
    from mesascope.records import StudyAxis, StudyPoint, StudyRecord

    store = open_store(root)
    for number in count(int(first)):
        run = compute(store.folders, number, length=1 + 997 * (number % 7))
        store.enter([run])
        axes, points = (StudyAxis(name="a", labels=(1,)),), (StudyPoint(run=run, place=(0,)),)
        store.write_study(StudyRecord(name="killed", kind="flow", spec={}, axes=axes, points=points))


def write_many(root, index, first, number):
    """Compute and enter runs one by one, together with others who do the same."""
    with open_store(root, None if index == "-" else index) as store:
        for one in range(int(first), int(first) + int(number)):
            store.enter([compute(store.folders, one, length=3)])


def fill(root, limit):
    """Write ever more into a place that takes no more than so many bytes in a file (0: the disk is small)."""
    import resource

    from mesascope.records import RecordError

    folders = RunFolders(root)
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    for number in range(500):
        try:
            compute(folders, number, length=4000 if number % 4 == 3 else 1)
        except RecordError as error:
            print(error, flush=True)
            return
    raise AssertionError("it was never full")


if __name__ == "__main__":
    import sqlalchemy.dialects.postgresql
    import sqlalchemy.dialects.sqlite  # noqa: F401
    import xarray  # noqa: F401

    background = set()
    for line in sys.stdin:
        background = {
            pid for pid in background if os.waitpid(pid, os.WNOHANG) == (0, 0)
        }  # a zombie counts as alive
        awaited, name, *arguments = line.split()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                globals()[name](*arguments)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            os._exit(status)
        if awaited == "background":
            background.add(child)
            print(child, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
