"""Exact loss and gradient of preconditioned steps on regression prompts."""

import jax
import pytest

from mesascope import ExactMoments, FewShot, LinearRegression
from mesascope.models import preconditioned_linear_transformer
from mesascope.objectives._wishart_words import _canonical, _pairings, plan


@pytest.mark.parametrize(("layers", "dim", "seconds"), [(2, 10, 10e-3), (3, 5, 100e-3)])
def test_value_and_gradient(benchmark, bar, layers, dim, seconds):
    bar(what=f"exact loss and gradient of {layers} preconditioned layers, d = {dim}, any N", seconds=seconds)
    objective = ExactMoments().objective(LinearRegression(dim, noise=0.5), FewShot(20))
    function = jax.jit(jax.value_and_grad(lambda model: objective(model).value))
    model = preconditioned_linear_transformer(dim, layers, key=jax.random.key(0))
    benchmark.pedantic(
        lambda: jax.block_until_ready(function(model)), rounds=50, iterations=10, warmup_rounds=2
    )


def test_planning(benchmark, bar):
    bar(what="plan of three different preconditioned layers, 10 395 pairings", seconds=5)

    def anew():
        for cached in (plan, _pairings, _canonical):
            cached.cache_clear()

    benchmark.pedantic(lambda: plan((0, 1, 2)), setup=anew, rounds=5)
