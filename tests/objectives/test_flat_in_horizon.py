"""The horizon changes neither the computation nor the time of planning."""

import itertools
import time

import equinox as eqx
import jax
import numpy as np
import pytest

from mesascope.models import LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import ExactMoments, population_loss
from mesascope.objectives import _exact as exact
from mesascope.objectives import _plan as plan
from mesascope.objectives._counts import counts
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, NextToken, Rademacher, Sparse, Uniform

KEY = jax.random.key(0)
LAWS = {
    "gaussian": Gaussian(1.0),
    "sparse": Sparse(1.5),
    "full-one": Constant(1),
    "vector": Constant([1.0, -0.5, 2.0]),
}
every_law = pytest.mark.parametrize("name", LAWS)


def objective(law, task, normalizer="t-1"):
    return ExactMoments().objective(DiagonalUnitary(law, 3), task, normalizer)


def shape(tree):
    """The structure, including static parts, and the shapes of arrays, on which compiled code depends."""
    return jax.tree.structure(tree), [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


@every_law
@pytest.mark.parametrize("normalizer", ["t-1", "t", "1"])
def test_plans_of_all_horizons_have_one_structure(name, normalizer):
    rng = np.random.default_rng(0)
    reference = shape(objective(LAWS[name], NextToken(10), normalizer))
    for horizon in (8, 9, 11, 12, 30, 100, 1000, 10**6):
        assert shape(objective(LAWS[name], NextToken(horizon), normalizer)) == reference, horizon
    for horizon in (8, 14, 50):
        weights = rng.uniform(0.1, 1, horizon - 2)
        assert shape(objective(LAWS[name], NextToken(horizon, weights), normalizer)) == reference
    # without the shortest context some contractions are not needed: one structure again, a smaller one
    last = shape(objective(LAWS[name], NextToken.last(8), normalizer))
    for horizon in (9, 20, 10**6, 10**9):
        assert shape(objective(LAWS[name], NextToken.last(horizon), normalizer)) == last, horizon


def test_cancelled_terms_are_exactly_zero_at_every_horizon_and_scale():
    """Coefficients that are zero by an identity between counts are exactly zero."""

    def occurring(scale, horizon):
        prepared = objective(Gaussian(scale), NextToken(horizon), "t")
        return [leaf != 0 for leaf in jax.tree.leaves((prepared.quadratic, prepared.cross))]

    for scale, horizon in itertools.product((1.0, 0.7, "1/3"), (12, 30, 1000, 10**6)):
        for here, there in zip(occurring(1.0, 12), occurring(scale, horizon), strict=True):
            np.testing.assert_array_equal(here, there)


def test_scales_and_laws_of_one_kind_share_a_structure():
    assert shape(objective(Gaussian(2.0), NextToken(10))) == shape(objective(Gaussian(1.0), NextToken(99)))
    assert shape(objective(Uniform(1), NextToken(10))) == shape(objective(Gaussian(1.0), NextToken(10)))


@every_law
def test_the_computation_is_the_same(name):
    model = LinearAttention.gaussian(3, 0.3, key=KEY)
    programs = []
    for horizon in (10, 10**6):
        arrays, static = eqx.partition(objective(LAWS[name], NextToken(horizon)), eqx.is_array)
        program = jax.make_jaxpr(lambda a, m, s=static: eqx.combine(a, s)(m).value)(arrays, model)
        programs.append(str(program))
    assert programs[0] == programs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        lambda key: LinearAttention.gaussian(3, 0.3, key=key),
        lambda key: MultiHeadLinearAttention.gaussian(3, 2, 0.3, key=key),
    ],
    ids=["merged", "heads"],
)
def test_nothing_is_compiled_for_another_horizon_scale_or_weight(build, compilations):
    first, second = build(KEY), build(jax.random.key(1))

    @eqx.filter_jit
    def value_and_gradient(objective, model):
        return eqx.filter_value_and_grad(lambda m: objective(m).value)(model)

    value_and_gradient(objective(Gaussian(1.0), NextToken(10)), first)
    population_loss(first, DiagonalUnitary(Gaussian(1.0), 3), NextToken(10))
    losses = []
    with compilations() as made:
        for law, task in [
            (Gaussian(1.0), NextToken(10**6)),
            (Gaussian(0.5), NextToken(10)),
            (Gaussian(1.0), NextToken(9, {2: 0.5, 8: 1.5})),
            (Gaussian("1/3"), NextToken(10**9)),
        ]:
            losses.append(float(value_and_gradient(objective(law, task), second)[0]))
            # the function, outside of jit
            again = population_loss(second, DiagonalUnitary(law, 3), task)
            assert float(again.value) == pytest.approx(losses[-1], rel=1e-12)
    assert len(set(losses)) == 4
    assert not made


def test_long_sums_are_consistent_with_single_lengths():
    """The loss of a single length is e + f/(t−1) + g/(t−1)² once t ≥ 7: three of them give all up to T = 10⁶."""
    model, law = LinearAttention.gaussian(3, 0.3, key=KEY), Rademacher(1)

    def loss(task):
        return float(population_loss(model, DiagonalUnitary(law, 3), task).value)

    short, long = loss(NextToken(1000)), loss(NextToken(10**6))
    t = np.array([10, 20, 400])
    e, f, g = np.linalg.solve(
        np.stack([np.ones(3), 1 / (t - 1.0), 1 / (t - 1.0) ** 2], 1), [loss(NextToken.last(k + 1)) for k in t]
    )
    s = np.arange(999, 10**6 - 1, dtype=float)
    # the coefficients come from differences of losses: a few digits are lost in them
    assert long - short == pytest.approx(e * len(s) + f * np.sum(1 / s) + g * np.sum(1 / s**2), rel=1e-10)


@pytest.mark.parametrize("law", [Gaussian(1.0), Constant([1.0, -0.5, 2.0])], ids=["exchangeable", "vector"])
@pytest.mark.parametrize("horizon", [10, 10**6, 10**12])
def test_planning_takes_less_than_half_a_second(horizon, law):
    times = []
    for _ in range(3):  # the fastest of three, in processor time: others use this machine too
        for cache in (exact.exact_objective, plan._intervals, counts):
            cache.cache_clear()
        began = time.process_time()
        prepared = objective(law, NextToken(horizon))
        times.append(time.process_time() - began)
    assert min(times) < 0.5
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(prepared))


def test_the_loss_of_1e12_tokens_is_finite():
    model = LinearAttention.gaussian(3, 0.3, key=KEY)
    per_length = [
        float(population_loss(model, DiagonalUnitary(Gaussian(1), 3), NextToken(horizon)).value) / horizon
        for horizon in (10**8, 10**12)
    ]
    assert np.isfinite(per_length).all()
    assert per_length[1] == pytest.approx(per_length[0], rel=1e-5)  # the excess decreases like ln T/T
