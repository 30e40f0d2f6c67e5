"""The exact engine: value and gradient, many weight sets, horizons, planning."""

import jax
import pytest

from mesascope import (
    DiagonalUnitary,
    ExactMoments,
    Gaussian,
    LinearAttention,
    MarkovChains,
    NextToken,
    gradient_flow,
)
from mesascope.objectives import losses_and_gradients
from mesascope.objectives._exact import exact_objective
from mesascope.papers.edelman2024 import _exact_flow

KEY = jax.random.key(0)


def _prepared(dim, horizon):
    objective = ExactMoments().objective(DiagonalUnitary(Gaussian(1.0), dim), NextToken(horizon))
    function = jax.jit(lambda objective, model: jax.value_and_grad(lambda m: objective(m).value)(model))
    model = LinearAttention.gaussian(dim, 0.5, key=KEY)
    jax.block_until_ready(function(objective, model))
    return lambda: jax.block_until_ready(function(objective, model))


@pytest.mark.parametrize(("dim", "seconds"), [(5, 1e-4), (64, 5e-3)])
def test_value_and_gradient(benchmark, bar, dim, seconds):
    bar(what=f"exact loss and gradient, Gaussian law, T = 100, d = {dim}", seconds=seconds)
    benchmark.pedantic(_prepared(dim, 100), rounds=200, iterations=10 if dim == 5 else 1, warmup_rounds=5)


def test_thousand_weight_sets(benchmark, bar):
    bar(what="exact loss and gradient of 1000 weight sets, d = 5, in one call", seconds=20e-3)
    objective = ExactMoments().objective(DiagonalUnitary(Gaussian(1.0), 5), NextToken(100))
    models = jax.vmap(lambda key: LinearAttention.gaussian(5, 0.5, key=key))(jax.random.split(KEY, 1000))
    benchmark.pedantic(
        lambda: jax.block_until_ready(losses_and_gradients(objective, models)), rounds=30, warmup_rounds=3
    )


@pytest.mark.parametrize("horizon", [10, 1000, 10**6])
def test_cost_is_flat_in_the_horizon(benchmark, bar, horizon):
    bar(what=f"exact loss and gradient, d = 5, T = {horizon}", seconds=1e-4)
    benchmark.pedantic(_prepared(5, horizon), rounds=200, iterations=10, warmup_rounds=5)


@pytest.mark.parametrize("horizon", [10, 100, 10**6, 10**12])
def test_planning(benchmark, bar, horizon):
    bar(what=f"planning the exact engine, T = {horizon}", seconds=0.5)
    process = DiagonalUnitary(Gaussian(1.0), 5)

    def plan():
        exact_objective.cache_clear()
        return ExactMoments().objective(process, NextToken(horizon))

    benchmark.pedantic(plan, rounds=10, warmup_rounds=1)


def test_steps_of_the_flow_of_a_transformer(benchmark, bar):
    """Two layers of attention alone of width 16, on all sequences of ten of two symbols."""
    bar(
        what="100 steps of the exact flow of a softmax transformer, width 16, two symbols, T = 10",
        seconds=5.0,
    )
    start = _exact_flow.transformer(_exact_flow._Saddle(width=16), 10)
    benchmark.pedantic(lambda: _flow_of(start, max_steps=100), rounds=5, warmup_rounds=1)


def test_flow_of_a_transformer_through_its_plateau(benchmark, bar):
    """The flow of the claim to time 200, where it has left the plateau of unigrams, whose loss is 4.97; compiled anew."""
    bar(
        what="exact flow of such a transformer (width 16, T = 10) through its plateau, compilation included",
        seconds=300.0,
    )
    start, flows = _exact_flow.transformer(_exact_flow._Saddle(width=16), 10), []
    jax.clear_caches()
    benchmark.pedantic(lambda: flows.append(_flow_of(start, until=200.0, rtol=_exact_flow._RTOL)), rounds=1)
    end = flows[0]
    assert end.objective(end.model).value < 4.9
    benchmark.extra_info["detail"] = f"{end.stats['steps']} steps to time 200, rtol = {_exact_flow._RTOL:g}"


def _flow_of(start, **limits):
    return gradient_flow(start, MarkovChains(2), NextToken(10), **limits)


def test_flow_on_prompts_to_rest(benchmark, bar, run_python):
    """One layer of linear attention of 50 weights on regression prompts: thirteen thousand steps, compilation included."""
    bar(what="flow of one layer on prompts to rest, d = 4, N = 31, 50 weights, cold", seconds=10)
    code = (
        "import jax, mesascope as ms\n"
        "ms.enable_x64()\n"
        "process = ms.LinearRegression(4, covariance=[[0.4, 0, 0, 0], [0, 0.3, 0, 0], [0, 0, 0.2, 0], [0, 0, 0, 0.1]])\n"
        "start = ms.prompt_linear_transformer(4, 1, 1, 0.1, key=jax.random.key(0))\n"
        "print(ms.gradient_flow(start, process, ms.FewShot(31)).result.value)"
    )
    finished = benchmark.pedantic(lambda: run_python("-c", code), rounds=1)
    benchmark.extra_info["memory"] = finished.memory
    assert finished.output.strip() == "converged"


def test_first_plan_of_a_process(benchmark, bar, run_python):
    """Planning with nothing cached, as a fresh interpreter meets it."""
    bar(what="first plan of a fresh process", seconds=0.5)
    code = (
        "import jax, time; jax.config.update('jax_enable_x64', True)\n"
        "import mesascope as ms\n"
        "from mesascope.objectives import ExactMoments\n"
        "process, task = ms.DiagonalUnitary(ms.Gaussian(1.0), 5), ms.NextToken(100)\n"
        "jax.numpy.zeros(3).block_until_ready()\n"
        "start = time.perf_counter(); ExactMoments().objective(process, task); print(time.perf_counter() - start)"
    )
    times = []

    def once():
        times.append(float(run_python("-c", code).output))

    benchmark.pedantic(once, rounds=3)
    benchmark.extra_info["seconds"] = sorted(times)[1]
