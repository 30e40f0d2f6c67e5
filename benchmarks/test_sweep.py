"""Sweeps: what a run costs beyond its computation, what a second worker brings, and when batches pay."""

import json
import time
from datetime import datetime

import numpy as np
import pytest
from measuring import ALL_CORES

from mesascope.records import RunFolders
from mesascope.studies import StudySpec, parse_spec, sweep

BASE = {"law": {"kind": "gaussian"}, "dim": 3, "horizon": 20, "init": {"kind": "diagonal", "b": 0.1}}
RUNS = 100
FLOWS = 64


def _study(name, low, high, count=RUNS, **changes):
    axis = {"path": "init.a", "range": {"start": low, "stop": high, "count": count}}
    return {"name": name, "kind": "flow", "base": {**BASE, **changes}, "axes": [axis]}


@pytest.fixture
def parsed():
    return lambda *which: parse_spec(_study(*which), StudySpec)


def test_overhead_of_a_run(benchmark, bar, parsed, tmp_path):
    bar(what="sweep in process, what a run costs beyond its computation", seconds=0.02)
    sweep(parsed("warm", 0.1, 0.2, 3), tmp_path / "s")
    taken = []

    def overhead():
        study = parsed(f"study-{len(taken)}", 0.1 + 1e-3 * len(taken), 0.5)
        start = time.perf_counter()
        result = sweep(study, tmp_path / "s")
        wall = time.perf_counter() - start
        folders = RunFolders(tmp_path / "s")
        computed = sum(folders.finished(run).seconds for run in result.ids)
        taken.append((wall - computed) / RUNS)

    benchmark.pedantic(overhead, rounds=3)
    benchmark.extra_info["seconds"] = float(np.median(taken))


def test_overhead_of_a_run_on_dask(benchmark, bar, run_command, tmp_path):
    """With one worker, from when it has ended its first twenty runs: those compile, and the scheduler settles."""
    bar(what="sweep on a local Dask worker, what a run costs beyond its computation", seconds=0.02)
    file = tmp_path / "study.json"
    file.write_text(json.dumps(_study("flows", 0.1, 0.5, RUNS + 20)))
    taken = []

    def overhead():
        store = tmp_path / str(len(taken))
        done = run_command("sweep", file, "--store", store, "--json", "--scheduler", "local", "--workers", 1)
        folders = RunFolders(store)
        runs = [folders.finished(run) for run in json.loads(done.output)["ids"]]
        ends = sorted((datetime.fromisoformat(one.ended).timestamp(), one.seconds) for one in runs)[20:]
        taken.append((ends[-1][0] - ends[0][0] - sum(seconds for _, seconds in ends[1:])) / (len(ends) - 1))

    benchmark.pedantic(overhead, rounds=2)
    benchmark.extra_info["seconds"] = float(np.median(taken))


@pytest.mark.parametrize(("runs", "what"), [(30, "after their start"), (120, "the whole command")])
def test_two_workers_against_one(benchmark, bar, run_command, tmp_path, runs, what):
    """Of runs that take most of a second each: a short study without the start of the workers, and all of a long one."""
    if len(ALL_CORES) < 2:
        pytest.skip("two workers need two cores")
    bar(what=f"sweep, two local workers against one, {runs} runs of equal length, {what}", faster=1.8)
    file = tmp_path / "study.json"
    descent = {"method": "descent", "lr": 1e-6, "steps": 40_000, "dim": 5, "horizon": 100}
    file.write_text(json.dumps(_study("descents", 0.1, 0.5, runs, **descent)))
    seconds, rates = {}, {}

    def both():
        for workers in (1, 2):
            store = tmp_path / str(workers)
            options = ("--scheduler", "local", "--workers", workers)
            done = run_command("sweep", file, "--store", store, "--json", *options)
            assert json.loads(done.output)["done"] == runs
            seconds[workers], rates[workers] = done.seconds, _rate(store)

    benchmark.pedantic(both, rounds=1)
    whole, started = seconds[1] / seconds[2], rates[2] / rates[1]
    info = benchmark.extra_info
    info["faster"] = started if what == "after their start" else whole
    info["detail"] = (
        f"the whole command {seconds[1]:.1f} s and {seconds[2]:.1f} s, {whole:.2f} ×; after the start "
        f"{rates[1]:.2f} and {rates[2]:.2f} runs a second, {started:.2f} ×"
    )


def _rate(store):
    """Runs in a second, from when every worker has ended its first one."""
    ends = {}
    for file in store.glob("runs/*/*/attempts.jsonl"):
        record = RunFolders(store).finished(file.parent.name)
        worker = json.loads(file.read_text().splitlines()[-1])["pid"]
        ends.setdefault(worker, []).append(datetime.fromisoformat(record.ended).timestamp())
    begin = max(min(one) for one in ends.values())
    later = sorted(end for one in ends.values() for end in one if end > begin)
    return len(later) / (later[-1] - begin)


STARTS = {
    "diagonal": ({"kind": "diagonal", "b": 0.1}, "init.a"),
    "gaussian": ({"kind": "gaussian", "seed": 0}, "init.scale"),
}


@pytest.mark.parametrize(
    ("dim", "horizon", "starts"), [(2, 20, "diagonal"), (5, 100, "diagonal"), (5, 100, "gaussian")]
)
def test_flows_of_a_batch(benchmark, bar, dim, horizon, starts, tmp_path):
    """The whole sweep, in this process: 64 flows to the time at which they are most of the way to rest."""
    what = f"sweep of 64 flows from {starts} starts to a time, d = {dim}, T = {horizon}"
    bar(what=f"{what}, --batch 32 against one by one", slower=1.0)
    taken = {1: [], 32: []}
    init, path = STARTS[starts]
    base = {**BASE, "init": init, "dim": dim, "horizon": horizon, "until": 400 / (horizon * dim**2)}

    def swept(batch):
        # other points every time, from near starts
        low = 0.05 + 1e-4 * len(taken[batch]) + 1e-5 * batch
        axis = {"path": path, "range": {"start": low, "stop": low + 0.3, "count": FLOWS}}
        study = {"name": f"of-{batch}-{len(taken[batch])}", "kind": "flow", "base": base, "axes": [axis]}
        start = time.perf_counter()
        result = sweep(parse_spec(study, StudySpec), tmp_path / "s", batch=batch)
        taken[batch].append((time.perf_counter() - start) / FLOWS)
        assert result.done == FLOWS

    def both():
        swept(1), swept(32)

    benchmark.pedantic(both, rounds=3, warmup_rounds=1)  # the first compiles
    one, together = (float(np.median(times[1:])) for times in taken.values())
    benchmark.extra_info["slower"] = together / one
    benchmark.extra_info["detail"] = (
        f"{1e3 * one:.1f} ms and {1e3 * together:.1f} ms a run; "
        f"the first time, compiling included, {taken[1][0] * FLOWS:.1f} s and {taken[32][0] * FLOWS:.1f} s"
    )
