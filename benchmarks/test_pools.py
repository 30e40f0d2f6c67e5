"""Regression prompts and pools of tasks: exact loss and gradient of one layer, and the exact minimum."""

from itertools import count

import jax
import numpy as np
import pytest

from mesascope import ExactMoments, FewShot, LinearRegression, TaskPool
from mesascope.models import prompt_linear_transformer
from mesascope.papers.lu2024 import _map as lu2024_map
from mesascope.theory import lu2024


def _prepared(process, examples):
    objective = ExactMoments().objective(process, FewShot(examples))
    function = jax.jit(lambda model: jax.value_and_grad(lambda m: objective(m).value)(model))
    model = prompt_linear_transformer(process.dim, 1, key=jax.random.key(0))
    return lambda: jax.block_until_ready(function(model))


def test_many_dimensions(benchmark, bar):
    bar(what="exact loss and gradient on Gaussian tasks, d = 100, N = 100", seconds=50e-3)
    benchmark.pedantic(_prepared(LinearRegression(100), 100), rounds=20, warmup_rounds=2)


def test_pool(benchmark, bar):
    bar(what="exact loss and gradient on a pool of 1000 tasks, d = 20, N = 40", seconds=20e-3)
    process = TaskPool(LinearRegression(20, noise=0.5), tasks=1000)
    benchmark.pedantic(_prepared(process, 40), rounds=50, warmup_rounds=2)


def test_first_loss_of_many_dimensions(benchmark, bar, run_python):
    """Planned and compiled by a fresh interpreter, after jax has started."""
    bar(what="first exact loss of a process, d = 100, N = 100, cold", seconds=1.0)
    code = (
        "import jax, time; jax.config.update('jax_enable_x64', True)\n"
        "import mesascope as ms\n"
        "from mesascope.models import prompt_linear_transformer\n"
        "model = prompt_linear_transformer(100, 1, key=jax.random.key(0))\n"
        "jax.block_until_ready(jax.tree.leaves(model))\n"
        "start = time.perf_counter()\n"
        "float(ms.population_loss(model, ms.LinearRegression(100), ms.FewShot(100)))\n"
        "print(time.perf_counter() - start)"
    )
    times = []
    benchmark.pedantic(lambda: times.append(float(run_python("-c", code).output)), rounds=3)
    benchmark.extra_info["seconds"] = sorted(times)[1]


@pytest.mark.parametrize(("dim", "tasks"), [(50, 500)])
def test_exact_minimum(benchmark, bar, dim, tasks):
    bar(
        what=f"exact minimum on a pool and its error on new tasks, K = {tasks}, d = {dim}, drawn anew",
        seconds=2,
    )
    process = LinearRegression(dim, covariance=np.eye(dim) / dim, prior="sphere", noise=0.5)

    task, seeds = FewShot(2 * dim), count()

    def solve():
        pool, fresh = (
            lu2024.features(one, task) for one in (TaskPool(process, tasks=tasks, seed=next(seeds)), process)
        )
        return fresh.error(pool.minimum)

    benchmark.pedantic(solve, rounds=10, warmup_rounds=1)


def test_map_of_training_on_pools(benchmark, bar):
    bar(what="map of 40 × 40 pools, d = 20, 72 times of the flow, 8 pools a cell", seconds=60)
    settings = lu2024_map._Map()
    benchmark.pedantic(lambda: lu2024_map._figure(settings, lu2024_map._Table.of(settings)), rounds=1)
