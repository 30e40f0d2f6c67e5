"""Sweeps: what a run costs beyond its computation, and what a second worker brings; and flows of a batch in one call."""

import json
import os
import time
from datetime import datetime

import jax
import numpy as np
import pytest
from measuring import ALL_CORES

import mesascope as ms
from mesascope.dynamics import flow_ends
from mesascope.records import RunFolders
from mesascope.studies import FlowSpec, StudySpec, parse_spec, sweep

BASE = {"law": {"kind": "gaussian"}, "dim": 3, "horizon": 20, "init": {"kind": "diagonal", "b": 0.1}}
RUNS = 100


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


def test_two_workers_against_one(benchmark, bar, run_command, tmp_path):
    """Of runs that take most of a second each: all of the command, and without the start of the workers."""
    if len(ALL_CORES) < 2:
        pytest.skip("two workers need two cores")
    bar(what="sweep, two local workers against one, 30 runs of equal length, after their start", faster=1.8)
    file = tmp_path / "study.json"
    descent = {"method": "descent", "lr": 1e-6, "steps": 40_000, "dim": 5, "horizon": 100}
    file.write_text(json.dumps(_study("descents", 0.1, 0.5, 30, **descent)))
    seconds, rates = {}, {}

    def both():
        for workers in (1, 2):
            store = tmp_path / str(workers)
            options = ("--scheduler", "local", "--workers", workers)
            done = run_command("sweep", file, "--store", store, "--json", *options)
            assert json.loads(done.output)["done"] == 30
            seconds[workers], rates[workers] = done.seconds, _rate(store)

    benchmark.pedantic(both, rounds=1)
    info = benchmark.extra_info
    info["faster"] = rates[2] / rates[1]
    info["detail"] = (
        f"the whole command {seconds[1]:.1f} s and {seconds[2]:.1f} s, {seconds[1] / seconds[2]:.2f} ×; "
        f"then {rates[1]:.2f} and {rates[2]:.2f} runs a second"
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


@pytest.mark.parametrize(("dim", "horizon"), [(3, 20), (5, 100)])
def test_flows_of_a_batch_in_one_call(benchmark, bar, dim, horizon):
    """Why runs are not put together: one compiled call for 32 flows takes as long as 32 calls."""
    bar(what=f"32 flows one by one against one call (flow_ends), d = {dim}, T = {horizon}")
    specs = [_flow(dim, horizon, 0.05 + 0.01 * i) for i in range(32)]
    problems = [spec.build() for spec in specs]
    models = jax.tree.map(lambda *w: jax.numpy.stack(w), *[one.model for one in problems])
    _, process, task, _ = problems[0]

    def alone():
        return sum(
            ms.gradient_flow(one.model, process, task, rtol=1e-11, saves=2).stats["steps"] for one in problems
        )

    def together():
        return int(np.sum(flow_ends(models, process, task, rtol=1e-11, tolerance=1e-11).steps))

    alone(), together()
    start = time.perf_counter()
    steps = alone()
    spent = time.perf_counter() - start
    steps_together = benchmark.pedantic(together, rounds=3)
    once = benchmark.stats.stats.median
    benchmark.extra_info["detail"] = (
        f"{1e6 * spent / steps:.1f} µs a step one by one, {1e6 * once / steps_together:.1f} µs together; "
        f"{os.cpu_count()} cores, one of them used"
    )


def _flow(dim, horizon, a):
    init = {"kind": "gaussian", "scale": a, "seed": 0}
    return parse_spec({**BASE, "dim": dim, "horizon": horizon, "init": init}, FlowSpec)
