"""The closed forms against the gradient of the loss itself, by quadrature over every sequence.

The oracle takes the law's atoms or Gauss nodes and roots of unity beyond the degree of the loss in λ, writes
down the forward pass as in the paper, and differentiates it: it shares no algebra with the theory.
"""

import itertools
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import embed
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.theory import zheng2024

RHO = {"t-1": lambda t: t - 1, "t": lambda t: t, "1": lambda t: 1}


def signed(rows):
    """Every row with every choice of signs, so that all moments with an odd exponent vanish."""
    return [[s * v for s, v in zip(signs, row, strict=True)] for row in rows for signs in SIGNS[len(row)]]


SIGNS = {d: list(itertools.product([1.0, -1.0], repeat=d)) for d in (2, 3)}

# κ1, κ2 and κ3 are the same for all three coordinates, Σ_r E x_j^4 x_r^2 is not: the first four kinds of rows
# give E x_j^2 x_r^4 equal row sums but unequal column sums, the one-hot rows level E x_j^4 and E x_j^6.
LOPSIDED = Empirical(
    signed(
        3 * [[1, 2, 0]] + 4 * [[2, 1, 0]] + 4 * [[2, 0, 1]] + [[0, 2, 1]]
        + 2 * [[1, 0, 0]] + [[0, 1, 0]] + 4 * [[0, 2, 0]] + 8 * [[0, 0, 2]]
    ),
    joint=True,
)  # fmt: skip

DIAGONAL = {
    "gaussian": (Gaussian(0.8), 2),
    "uniform": (Uniform(1.5), 2),
    "student": (StudentT(9, 0.5), 2),
    "sparse": (Sparse(1.5), 3),
    "rademacher": (Rademacher(0.7), 3),
    "mixture": (Mixture([("1/3", Sparse(2)), ("2/3", Rademacher(0.5))]), 3),
    "one-hot of fixed sign": (Empirical(np.eye(3), joint=True), 3),
    "dimension 1": (Constant(1.5), 1),
}
NOT_DIAGONAL = {
    "full-one": (Constant(1), 2),
    "vector": (Constant([1.0, 2.0]), 2),
    "skewed, mean 0": (Empirical([-1.0, -1.0, 2.0]), 2),
    "unequal columns": (Empirical(signed([[1, 2]])), 2),
    "lopsided": (LOPSIDED, 3),
}
ALL = DIAGONAL | NOT_DIAGONAL


def sequences(law, dim, horizon):
    """Every sequence of the quadrature, shape (n, T, d), and its probability."""
    # the loss has a lower degree in each λ
    roots = np.exp(2j * np.pi * np.arange(4 * horizon) / (4 * horizon))
    transitions = np.array(list(itertools.product(roots, repeat=dim)))
    powers = transitions[:, None, :] ** np.arange(horizon)[:, None]
    tokens, probabilities = [], []
    for probability, rules in law.quadrature(dim):
        for point in itertools.product(*(zip(*rule, strict=True) for rule in rules)):
            tokens.append(np.array([x for x, _ in point]) * powers)
            weight = probability * prod(w for _, w in point)
            probabilities.append(np.full(len(transitions), weight / len(transitions)))
    return np.concatenate(tokens), np.concatenate(probabilities)


def loss_and_gradient(law, dim, task, a, b, normalizer="t-1"):
    """Loss at diagonal weights, and its gradient in all entries of W^PV (d, 2d) and W^KQ (2d, 2d)."""
    tokens, probabilities = sequences(law, dim, task.horizon)
    embedded = np.asarray(embed(tokens))

    @jax.jit
    def loss(w_pv, w_kq):
        total = 0.0
        for t in task.support:
            gram = jnp.einsum("nia,nib->nab", embedded[:, :t], embedded[:, :t].conj()) / RHO[normalizer](t)
            prediction = jnp.einsum("pa,nab,bc,nc->np", w_pv, gram, w_kq, embedded[:, t - 1])
            error = jnp.sum(jnp.abs(prediction - tokens[:, t]) ** 2, axis=1)
            total += float(task.weight(t)) * 0.5 * probabilities @ error
        return total

    eye, zero = np.eye(dim), np.zeros((dim, dim))
    w_pv, w_kq = np.block([[b * eye, zero]]), np.block([[zero, zero], [a * eye, zero]])
    value, (g_pv, g_kq) = jax.value_and_grad(loss, argnums=(0, 1))(w_pv, w_kq)
    return float(value), np.asarray(g_pv), np.asarray(g_kq)


def on_manifold(dim, g_a, g_b):
    """Gradients that are multiples of the identity in both blocks."""
    eye, zero = np.eye(dim), np.zeros((dim, dim))
    return np.block([[g_b * eye, zero]]), np.block([[zero, zero], [g_a * eye, zero]])


def tasks(dim):
    return NextToken(4, ["1/2", 2]) if dim < 3 else NextToken(3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_loss_at_diagonal_weights(name):
    law, dim = ALL[name]
    a, b = 0.7, 0.4
    value, _, _ = loss_and_gradient(law, dim, tasks(dim), a, b)
    formula = zheng2024.diagonal_loss(DiagonalUnitary(law, dim), tasks(dim), a * b)
    assert value == pytest.approx(float(formula), rel=1e-12)  # sums of ~10^5 terms


@pytest.mark.parametrize("name", DIAGONAL)
def test_gradient_stays_on_the_diagonals_and_is_the_flow(name):
    law, dim = DIAGONAL[name]
    assert zheng2024.diagonal_stays_diagonal(law, dim)
    alpha, beta = map(float, zheng2024.flow_coefficients(DiagonalUnitary(law, dim), tasks(dim)))
    a, b = 0.7, -0.4
    _, g_pv, g_kq = loss_and_gradient(law, dim, tasks(dim), a, b)
    slope = alpha * a * b - beta
    expected_pv, expected_kq = on_manifold(dim, slope * b, slope * a)
    scale = abs(slope)
    np.testing.assert_allclose(g_pv, expected_pv, atol=1e-12 * scale)
    np.testing.assert_allclose(g_kq, expected_kq, atol=1e-12 * scale)


@pytest.mark.parametrize("name", NOT_DIAGONAL)
def test_laws_that_are_refused_do_leave_the_diagonals(name):
    law, dim = NOT_DIAGONAL[name]
    assert not zheng2024.diagonal_stays_diagonal(law, dim)
    _, g_pv, g_kq = loss_and_gradient(law, dim, tasks(dim), 0.7, 0.4)
    nearest_pv, nearest_kq = on_manifold(dim, np.trace(g_kq[dim:, :dim]) / dim, np.trace(g_pv[:, :dim]) / dim)
    assert max(abs(g_pv - nearest_pv).max(), abs(g_kq - nearest_kq).max()) > 1e-3 * abs(g_kq).max()


@pytest.mark.parametrize("normalizer", RHO)
@pytest.mark.parametrize("name", ["gaussian", "mixture"])
def test_the_limit_is_a_critical_point_for_every_normalizer(name, normalizer):
    law, dim = DIAGONAL[name]
    limit = float(zheng2024.limit_product(DiagonalUnitary(law, dim), tasks(dim), normalizer=normalizer))
    a = 0.9
    value, g_pv, g_kq = loss_and_gradient(law, dim, tasks(dim), a, limit / a, normalizer)
    alpha, _ = zheng2024.flow_coefficients(DiagonalUnitary(law, dim), tasks(dim), normalizer=normalizer)
    assert max(abs(g_pv).max(), abs(g_kq).max()) < 1e-13 * float(alpha)
    expected = zheng2024.limit_loss(DiagonalUnitary(law, dim), tasks(dim), normalizer=normalizer)
    assert value == pytest.approx(float(expected), rel=1e-12)


def test_masked_full_one_limit_is_critical_only_under_the_mask():
    # zheng2024, Theorem 4.3 and Proposition 4.2.
    dim, task = 2, NextToken(5)
    limit = float(zheng2024.masked_full_one_limit(dim, task))
    _, g_pv, g_kq = loss_and_gradient(Constant(1), dim, task, limit**0.5, limit**0.5)
    np.testing.assert_allclose(np.diag(g_pv[:, :dim]), 0, atol=1e-13)
    np.testing.assert_allclose(np.diag(g_kq[dim:, :dim]), 0, atol=1e-13)
    off_diagonal = ~np.eye(dim, dtype=bool)
    assert abs(g_pv[:, :dim][off_diagonal]).min() > 0.1
    assert abs(g_kq[dim:, :dim][off_diagonal]).min() > 0.1


@pytest.mark.slow
def test_wordings_of_assumption_41_that_are_not_enough():
    # Mean-zero skewed coordinates: every moment with a coordinate to the first power vanishes, the κ agree,
    law, dim = NOT_DIAGONAL["skewed, mean 0"]
    assert law.moment(1) == 0
    assert law.moment(3) != 0
    limit = float(zheng2024.limit_product(DiagonalUnitary(law, dim), tasks(dim), mask="off-diagonal"))
    _, g_pv, g_kq = loss_and_gradient(law, dim, tasks(dim), limit**0.5, limit**0.5)
    # and yet the limit of Theorem 4.1 is no critical point: entries off the diagonal pull away.
    np.testing.assert_allclose(np.diag(g_pv[:, :dim]), 0, atol=1e-12)
    assert min(abs(g_pv[0, 1]), abs(g_kq[dim, 1])) > 0.1
    # Equal κ1, κ2, κ3 do not make the diagonal entries of W^KQ move alike either.
    law, dim = NOT_DIAGONAL["lopsided"]
    each = zheng2024.coordinate_moments(law, dim)
    assert all(len(set(kappa)) == 1 for kappa in (each.kappa1, each.kappa2, each.kappa3))
    _, g_pv, g_kq = loss_and_gradient(law, dim, tasks(dim), 0.7, 0.4)
    assert np.ptp(np.diag(g_pv[:, :dim])) < 1e-12
    assert np.ptp(np.diag(g_kq[dim:, :dim])) > 1e-2
