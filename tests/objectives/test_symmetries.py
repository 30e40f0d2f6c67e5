"""Symmetries and homogeneity of the loss."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import FactoredLinearAttention, LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    Moments,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)

DIM = 4
TASK = NextToken(20)
RTOL = 1e-12  # two sums of the same few hundred terms: rounding, with room for cancellation between them
SKEWED = Moments([1, "1/2", "1/3", "1/4", "1/5", "1/6", "1/7"])
ORBIT = Empirical(sorted(set(itertools.permutations([2.0, -0.5, 0.0, 0.0]))), joint=True)
EXCHANGEABLE = {
    "gaussian": Gaussian(0.8),
    "sparse": Sparse(1.5),
    "full-one": Constant(1),
    "skewed": SKEWED,
    "orbit": ORBIT,
    "mixture": Mixture([("1/3", Sparse(1)), ("2/3", SKEWED)]),
}
EVEN = {
    "gaussian": Gaussian(0.8),
    "sparse": Sparse(1.5),
    "rademacher": Rademacher("2/3"),
    "uniform": Uniform(2),
    "student": StudentT(9, 0.5),
    "mixture": Mixture([("1/3", Sparse(1)), ("2/3", Uniform(1))]),
}


def random_weights(seed=0, dim=DIM, kind="complex"):
    rng = np.random.default_rng(seed)
    w_kq, w_pv = rng.normal(size=(2 * dim, 2 * dim)), rng.normal(size=(dim, 2 * dim))
    if kind == "complex":
        w_kq, w_pv = w_kq + 1j * rng.normal(size=w_kq.shape), w_pv + 1j * rng.normal(size=w_pv.shape)
    return 0.5 * w_kq, 0.5 * w_pv


def loss(law, w_kq, w_pv, task=TASK, normalizer="t-1", dim=DIM):
    return float(
        population_loss(LinearAttention(w_kq, w_pv, normalizer), DiagonalUnitary(law, dim), task).value
    )


def carried(matrix, w_kq, w_pv):
    """Weights transformed by an orthogonal M, equivalent on M x to the given weights on x."""
    both = np.kron(np.eye(2), matrix)
    return both @ w_kq @ both.T, matrix @ w_pv @ both.T


@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_permuted_coordinates(name):
    law, weights = EXCHANGEABLE[name], random_weights()
    before = loss(law, *weights)
    for order in ([1, 0, 2, 3], [1, 2, 3, 0], [3, 1, 0, 2]):
        after = loss(law, *carried(np.eye(DIM)[order], *weights))
        assert after == pytest.approx(before, rel=RTOL)


@pytest.mark.slow
def test_permuted_coordinates_of_a_law_that_is_not_exchangeable():
    weights, order = random_weights(), [2, 0, 3, 1]
    value = np.array([1.0, -0.5, 2.0, 0.25])
    moved = loss(Constant(value), *carried(np.eye(DIM)[order], *weights))
    assert moved == pytest.approx(loss(Constant(value[np.argsort(order)]), *weights), rel=RTOL)
    assert moved != pytest.approx(loss(Constant(value), *weights), rel=0.01)


@pytest.mark.parametrize("name", EVEN)
def test_flipped_signs(name):
    weights = random_weights()
    before = loss(EVEN[name], *weights)
    for signs in ([-1, 1, 1, 1], [1, -1, 1, -1], [-1, -1, -1, -1]):
        assert loss(EVEN[name], *carried(np.diag(signs), *weights)) == pytest.approx(before, rel=RTOL)


def test_flipped_signs_of_a_law_that_is_not_even():
    weights = random_weights()
    flipped = loss(SKEWED, *carried(np.diag([-1, 1, 1, 1]), *weights))
    assert flipped != pytest.approx(loss(SKEWED, *weights), rel=0.01)


@pytest.mark.parametrize(
    "law", [Gaussian(1), SKEWED, Constant([1.0, -0.5, 2.0, 0.25])], ids=lambda x: x.describe()
)
def test_conjugate_weights(law):
    """Tokens and their conjugates have the same law, since x_1 is real and λ and its conjugate have the same law."""
    w_kq, w_pv = random_weights()
    assert loss(law, w_kq.conj(), w_pv.conj()) == pytest.approx(loss(law, w_kq, w_pv), rel=RTOL)
    assert loss(law, w_kq.conj(), w_pv) != pytest.approx(loss(law, w_kq, w_pv), rel=0.01)


@pytest.mark.parametrize("law", [Gaussian(1), Constant([1.0, -0.5, 2.0, 0.25])], ids=lambda x: x.describe())
def test_scale_moves_freely_between_the_matrices(law):
    w_kq, w_pv = random_weights()
    before = loss(law, w_kq, w_pv)
    for s in (3.0, -0.25, 0.5 - 2j):
        assert loss(law, s * w_kq, w_pv / s) == pytest.approx(before, rel=RTOL)


@pytest.mark.parametrize("law", [Gaussian, Sparse, Rademacher, Uniform, Constant], ids=lambda x: x.__name__)
def test_scale_of_the_tokens(law):
    """ŷ is of third order in the tokens: L_{s x}(W^KQ, W^PV) = s² L_x(s² W^KQ, W^PV)."""
    w_kq, w_pv = random_weights()
    for s in (0.5, 2):
        assert loss(law(s), w_kq, w_pv) == pytest.approx(s**2 * loss(law(1), s**2 * w_kq, w_pv), rel=RTOL)


@pytest.mark.parametrize("law", [SKEWED, Constant([1.0, -0.5, 2.0, 0.25])], ids=lambda x: x.describe())
@pytest.mark.parametrize("which", [0, 1], ids=["w_kq", "w_pv"])
def test_quadratic_with_a_linear_cross_term(law, which):
    """L(s W) = L(0) + linear s + quadratic s² in each matrix, L(0) = ½ Σ_t w_t E‖x_1‖²."""
    weights = random_weights()
    steps = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    values = []
    for s in steps:
        scaled = [w * s if n == which else w for n, w in enumerate(weights)]
        values.append(loss(law, *scaled))
    values = np.array(values)
    second_moment = sum(float(m[2]) for m in law.product_terms(DIM)[0].moments)
    assert values[2] == pytest.approx(0.5 * (TASK.horizon - 2) * second_moment, rel=1e-14)
    # third and fourth differences of a quadratic vanish, up to rounding of its largest value
    assert np.abs(np.diff(values, 3)).max() < 1e-11 * values.max()
    linear = (values[3] - values[1]) / 2
    assert (values[4] - values[0]) / 4 == pytest.approx(linear, rel=1e-10)
    assert (values[3] + values[1]) / 2 > values[2]  # the quadratic part is E‖ŷ‖² > 0


def test_heads_add_up():
    w_kq, w_pv = random_weights(1)
    _, other = random_weights(2)
    process = DiagonalUnitary(SKEWED, DIM)

    def of(kq, pv):
        return float(population_loss(MultiHeadLinearAttention(kq, pv), process, TASK).value)

    single = loss(SKEWED, w_kq, w_pv + other)
    # equal keys and queries: the values add up, and a head without values says nothing
    assert of(np.stack([w_kq, w_kq]), np.stack([w_pv, other])) == pytest.approx(single, rel=RTOL)
    silent = np.stack([w_kq, random_weights(3)[0]]), np.stack([w_pv + other, 0 * other])
    assert of(*silent) == pytest.approx(single, rel=RTOL)
    # the order of heads is nothing
    kq = np.stack([w_kq, random_weights(3)[0]])
    pv = np.stack([w_pv, other])
    assert of(kq, pv) == pytest.approx(of(kq[::-1], pv[::-1]), rel=RTOL)
    assert of(kq, pv) != pytest.approx(of(kq, pv[::-1]), rel=0.01)


def test_factored_weights_have_the_loss_of_their_products():
    rng = np.random.default_rng(4)
    k, q = (rng.normal(size=(1, 3, 2 * DIM)) + 1j * rng.normal(size=(1, 3, 2 * DIM)) for _ in range(2))
    p, v = rng.normal(size=(1, DIM, 2)), rng.normal(size=(1, 2, 2 * DIM))
    model = FactoredLinearAttention(k, q, p, v)
    merged = loss(SKEWED, k[0].conj().T @ q[0], p[0] @ v[0])
    found = float(population_loss(model, DiagonalUnitary(SKEWED, DIM), TASK).value)
    assert found == pytest.approx(merged, rel=RTOL)


@pytest.mark.slow
def test_a_mixture_has_the_mean_loss_of_its_parts():
    weights = random_weights()
    parts = (("1/5", Sparse(2)), ("3/10", SKEWED), ("1/2", Constant([1.0, -0.5, 2.0, 0.25])))
    mixed = loss(Mixture(parts), *weights)
    expected = (
        0.2 * loss(parts[0][1], *weights) + 0.3 * loss(SKEWED, *weights) + 0.5 * loss(parts[2][1], *weights)
    )
    assert mixed == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("normalizer", ["t-1", "t", "1", np.sqrt], ids=["t-1", "t", "1", "sqrt"])
def test_weights_of_context_lengths_add_up(normalizer):
    weights = random_weights()
    horizon, chosen = 30, {2: 0.5, 3: 1.0, 7: 2.0, 8: 0.25, 29: 3.0}
    together = loss(Gaussian(1), *weights, NextToken(horizon, chosen), normalizer)
    apart = sum(w * loss(Gaussian(1), *weights, NextToken.last(t + 1), normalizer) for t, w in chosen.items())
    assert together == pytest.approx(apart, rel=RTOL)
    everything = loss(Gaussian(1), *weights, NextToken(12), normalizer)
    apart = sum(loss(Gaussian(1), *weights, NextToken.last(t + 1), normalizer) for t in range(2, 12))
    assert everything == pytest.approx(apart, rel=RTOL)


@pytest.mark.parametrize("law", [SKEWED, Gaussian(0.9), Uniform(1)], ids=lambda x: x.describe())
def test_coordinates_without_weights_add_their_own_loss(law):
    """Independent coordinates: in dimension 7, weights on the first three give the same loss as in dimension 3."""
    small, large = 3, 7
    w_kq, w_pv = random_weights(dim=small)
    grown_kq, grown_pv = np.zeros((2, large, 2, large), complex), np.zeros((large, 2, large), complex)
    grown_kq[:, :small, :, :small] = w_kq.reshape(2, small, 2, small)
    grown_pv[:small, :, :small] = w_pv.reshape(small, 2, small)
    grown = loss(law, grown_kq.reshape(14, 14), grown_pv.reshape(7, 14), dim=large)
    rest = 0.5 * (TASK.horizon - 2) * (large - small) * float(law.moment(2))
    assert grown == pytest.approx(loss(law, w_kq, w_pv, dim=small) + rest, rel=RTOL)


@pytest.mark.slow
@pytest.mark.parametrize("law", [Gaussian(0.7), Constant(1.5)], ids=lambda x: x.describe())
def test_equal_laws_in_two_forms_have_equal_losses(law):
    """The exchangeable and the coordinate-by-coordinate plan give the same loss."""
    weights = random_weights()
    moments = [law.moment(n) for n in range(7)]
    assert loss(Moments(moments), *weights) == pytest.approx(loss(law, *weights), rel=RTOL)
    if isinstance(law, Constant):
        # a mixture with a vector goes coordinate by coordinate; the vector is this very token
        apart = Mixture(
            [("1/2", law), ("1/4", Constant([1.5] * DIM)), ("1/4", Constant([1.5, 1.5, 1.5, 1.25]))]
        )
        expected = 0.75 * loss(law, *weights) + 0.25 * loss(Constant([1.5, 1.5, 1.5, 1.25]), *weights)
        assert loss(apart, *weights) == pytest.approx(expected, rel=RTOL)


@pytest.mark.slow
def test_samples_drawn_column_by_column_are_the_pool_when_columns_agree():
    weights = random_weights()
    pool = np.array([1.0, -0.5, 2.0])
    columns = Empirical(np.stack([pool] * DIM, 1))
    assert columns.exchangeable
    assert loss(columns, *weights) == pytest.approx(loss(Empirical(pool), *weights), rel=RTOL)
    mixed = Mixture([("1/2", columns), ("1/2", Constant([1.0, 2.0, 3.0, 4.0]))])  # by coordinates
    expected = 0.5 * loss(Empirical(pool), *weights) + 0.5 * loss(Constant([1.0, 2.0, 3.0, 4.0]), *weights)
    assert loss(mixed, *weights) == pytest.approx(expected, rel=RTOL)


def test_real_weights_may_be_given_as_complex():
    w_kq, w_pv = random_weights(kind="real")
    assert loss(SKEWED, w_kq + 0j, w_pv) == pytest.approx(loss(SKEWED, w_kq, w_pv), rel=RTOL)
    estimate = population_loss(LinearAttention(w_kq + 0j, w_pv + 0j), DiagonalUnitary(SKEWED, DIM), TASK)
    assert estimate.value.dtype == jnp.float64
    assert estimate.value.shape == estimate.standard_error.shape == ()
