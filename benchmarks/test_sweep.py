"""Sweeps: what a run costs beyond its computation, and what a second worker brings; and flows of a batch in one call."""

import json
import time
from datetime import datetime

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
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


@pytest.mark.parametrize(("dim", "horizon"), [(2, 20), (5, 100)])
def test_flows_of_a_batch_in_one_call(benchmark, bar, dim, horizon):
    """Why runs are not put together: 32 flows vectorized, in one compiled loop, and one by one, in the same hands."""
    bar(what=f"32 flows, vectorized against one by one, d = {dim}, T = {horizon}")
    problems = [_flow(dim, horizon, 0.05 + 0.01 * i).build() for i in range(32)]
    models = jax.tree.map(lambda *w: jnp.stack(w), *[one.model for one in problems])
    model, process, task, _ = problems[0]
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    _, unravel = ravel_pytree(arrays)
    starts = jnp.stack([ravel_pytree(one.model)[0] for one in problems])

    end = 400 / (horizon * dim**2)  # most of the way to rest, in units of the largest curvature

    def loss(vector):
        return ms.population_loss(eqx.combine(unravel(vector), static), process, task).value

    def flow(start):
        """To a time: a batch waits for the one that needs the most steps, as every batch does."""
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: -jax.grad(loss)(y)),
            diffrax.Tsit5(),
            *(0.0, end, 1e-3 * end, start),
            stepsize_controller=diffrax.PIDController(1e-9, 1e-12),
            max_steps=100_000,
        ).ys

    def timed(call):
        jax.block_until_ready(call())  # compiles
        start = time.perf_counter()
        jax.block_until_ready(call())
        return time.perf_counter() - start

    single, vectorized = jax.jit(flow), jax.jit(jax.vmap(flow))
    alone = timed(lambda: [single(start) for start in starts])
    few = jax.tree.map(lambda w: w[:8], models)
    looped = timed(lambda: flow_ends(few, process, task, rtol=1e-11, tolerance=1e-11).loss)
    rested = timed(lambda: [_end(one.model, process, task) for one in problems[:8]])
    benchmark.pedantic(lambda: jax.block_until_ready(vectorized(starts)), rounds=3, warmup_rounds=1)
    together = benchmark.stats.stats.median
    benchmark.extra_info["detail"] = (
        f"to a time {1e3 * alone:.0f} ms one by one, {1e3 * together:.0f} ms vectorized ({together / alone:.1f} × as long); "
        f"eight of them to rest {1e3 * rested:.0f} ms one by one, {1e3 * looped:.0f} ms in one compiled loop"
    )


def _end(model, process, task):
    return ms.gradient_flow(model, process, task, rtol=1e-11, saves=2).model


def _flow(dim, horizon, a):
    init = {"kind": "gaussian", "scale": a, "seed": 0}
    return parse_spec({**BASE, "dim": dim, "horizon": horizon, "init": init}, FlowSpec)
