"""Engines under jit, grad and vmap: first use inside a trace, and no repeated compilation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import Enumeration, ExactMoments, MonteCarlo, population_loss
from mesascope.objectives import _enumeration as enumeration
from mesascope.objectives import _exact as exact
from mesascope.objectives import _plan as plan
from mesascope.objectives._counts import counts
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, NextToken

ENGINES = {"exact": ExactMoments(), "enumeration": Enumeration(), "sampled": MonteCarlo(200)}
LAWS = {"exchangeable": Gaussian(1.0), "vector": Constant([1.0, -0.5])}
TASK = NextToken(4)
MODEL = LinearAttention.gaussian(2, 0.4, key=jax.random.key(0))
every_setting = pytest.mark.parametrize(
    "law, engine", [(law, engine) for law in LAWS for engine in ENGINES], ids=str
)


def loss(law, engine):
    process = DiagonalUnitary(LAWS[law], 2)
    return lambda model: population_loss(model, process, TASK, ENGINES[engine]).value


def forget():
    """Clear the caches of plans, as in a new process."""
    for cache in (exact.exact_objective, enumeration.enumerated_objective, plan._intervals, counts):
        cache.cache_clear()


def stacked(*models):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


FIRST_USES = {
    "jit": lambda f: jax.jit(f)(MODEL),
    "grad": lambda f: jax.grad(f)(MODEL),
    "vmap": lambda f: jax.vmap(f)(stacked(MODEL, MODEL)),
    "scan": lambda f: jax.lax.scan(lambda carry, _: (carry + f(MODEL), None), 0.0, None, 2),
    "jit of vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(f)))(stacked(MODEL, MODEL)),
}


@pytest.mark.parametrize("first", FIRST_USES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_first_use_inside_a_trace_caches_no_tracer(engine, first):
    value = loss("exchangeable", engine)
    expected = float(value(MODEL))
    forget()
    FIRST_USES[first](value)
    # tracers in a cache would end here in an UnexpectedTracerError; compiled twice, sums may round differently
    assert float(value(MODEL)) == pytest.approx(expected, rel=1e-13)
    assert float(jax.jit(value)(MODEL)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_first_use_inside_a_trace_with_unequal_coordinates(engine):
    value = loss("vector", engine)
    forget()
    FIRST_USES["jit of vmap of grad"](value)
    assert np.isfinite(float(value(MODEL)))
    gradient = jax.grad(value)(MODEL)
    assert all(bool(jnp.isfinite(slope).all()) for slope in jax.tree.leaves(gradient))


def test_caches_contain_no_tracers_after_a_traced_use():
    forget()
    jax.jit(loss("exchangeable", "exact"))(MODEL)
    jax.jit(loss("exchangeable", "enumeration"))(MODEL)
    process = DiagonalUnitary(LAWS["exchangeable"], 2)
    for engine in (ExactMoments(), Enumeration()):
        prepared = engine.objective(process, TASK)
        assert prepared is engine.objective(process, TASK)  # remembered
        assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(prepared))


@pytest.mark.slow
@every_setting
def test_jit_and_vmap_change_nothing(law, engine):
    value = loss(law, engine)
    other = jax.tree.map(lambda w: 0.5 * w, MODEL)
    expected = [float(value(MODEL)), float(value(other))]
    # the same sums, perhaps in another order
    np.testing.assert_allclose(jax.jit(value)(MODEL), expected[0], rtol=1e-13)
    np.testing.assert_allclose(jax.vmap(value)(stacked(MODEL, other)), expected, rtol=1e-12)


@every_setting
def test_a_second_call_compiles_nothing(law, engine, compilations):
    value = loss(law, engine)
    other = jax.tree.map(lambda w: 0.5 * w, MODEL)
    jitted, gradient = jax.jit(value), jax.grad(value)
    uses = (value, jitted, gradient) if (law, engine) != ("vector", "exact") else (value, jitted)
    for use in uses:
        use(MODEL)
    with compilations() as made:
        for use in uses:
            jax.block_until_ready(use(other))
    assert not made


def test_several_heads_outside_of_jit_compile_once(compilations):
    process = DiagonalUnitary(Gaussian(1), 2)
    first, second = (MultiHeadLinearAttention.gaussian(2, 2, 0.3, key=jax.random.key(n)) for n in (0, 1))
    population_loss(first, process, TASK)
    with compilations() as made:
        population_loss(second, process, TASK).value.block_until_ready()
    assert not made


@pytest.mark.slow
def test_models_may_be_built_inside_a_trace():
    process = DiagonalUnitary(Gaussian(1), 2)

    def of_entries(w_kq, w_pv):
        return population_loss(LinearAttention(w_kq, w_pv), process, TASK).value

    def of_diagonal(a):
        return population_loss(LinearAttention.diagonal(2, a, 0.3), process, TASK).value

    def of_scale(scale):
        key = jax.random.key(0)
        return population_loss(LinearAttention.gaussian(2, scale, key=key), process, TASK).value

    expected = float(population_loss(MODEL, process, TASK).value)
    assert float(jax.jit(of_entries)(MODEL.w_kq, MODEL.w_pv)) == pytest.approx(expected, rel=1e-13)
    assert float(jax.jit(of_scale)(0.4)) == pytest.approx(expected, rel=1e-13)
    slope = float(jax.grad(of_diagonal)(0.2))
    # quadratic in a
    assert slope == pytest.approx(float(of_diagonal(1.2) - of_diagonal(-0.8)) / 2, rel=1e-12)


def test_the_default_engine_is_exact():
    process = DiagonalUnitary(Gaussian(1), 2)
    default = population_loss(MODEL, process, TASK)
    assert float(default.value) == float(population_loss(MODEL, process, TASK, ExactMoments()).value)
    assert float(default.standard_error) == 0
