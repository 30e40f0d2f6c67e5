"""Diagonal weights: the loss by explicit formulas (zheng2024, section 4.1, and its consequences)."""

from math import fsum

import numpy as np
import pytest

from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, ExactMoments, MonteCarlo, population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    Mixture,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)


# m2 = E x_j², κ1 = E x_j⁴, κ2 = E x_j⁶ and E x_j² x_r⁴ for r ≠ j, by hand
def product(m2, m4, m6):
    return lambda dim: (m2, m4, m6, m2 * m4)


MOMENTS = {
    Gaussian(0.8): product(0.8**2, 3 * 0.8**4, 15 * 0.8**6),
    Uniform(2): product(4 / 3, 16 / 5, 64 / 7),
    Rademacher(1.5): product(1.5**2, 1.5**4, 1.5**6),
    Constant(1): product(1, 1, 1),
    StudentT(10): product(10 / 8, 3 * 100 / (8 * 6), 15 * 1000 / (8 * 6 * 4)),
    Sparse(2): lambda dim: (4 / dim, 16 / dim, 64 / dim, 0.0),
    # half of all tokens of one size, half of another: moments of the mixture, not of its coordinates
    Mixture([("1/2", Rademacher(1)), ("1/2", Rademacher(2))]): lambda dim: (5 / 2, 17 / 2, 65 / 2, 65 / 2),
}
every_law = pytest.mark.parametrize("law", MOMENTS, ids=lambda law: law.describe())


def formula(law, dim, c, weights):
    """L = Σ_t w_t (d/2)(c² (κ2 + κ3/(t − 1)) − 2 c κ1 + m2), κ3 = Σ_{r ≠ j} E x_j² x_r⁴."""
    m2, kappa1, kappa2, one = MOMENTS[law](dim)
    kappa3 = (dim - 1) * one
    return fsum(
        w * dim / 2 * (c**2 * (kappa2 + kappa3 / (t - 1)) - 2 * c * kappa1 + m2) for t, w in weights.items()
    )


@every_law
@pytest.mark.parametrize("dim, horizon", [(1, 3), (2, 5), (3, 4), (5, 100), (17, 8)])
def test_loss_is_the_formula(law, dim, horizon):
    process = DiagonalUnitary(law, dim)
    for a, b in ((0.1, 0.1), (0.7, -0.4), (2.0, 2.0)):
        model = LinearAttention.diagonal(dim, a, b)
        equal = population_loss(model, process, NextToken(horizon))
        expected = formula(law, dim, a * b, dict.fromkeys(range(2, horizon), 1.0))
        # a hundred terms of moments known to the last place
        assert float(equal.value) == pytest.approx(expected, rel=1e-12)
        weights = {2: 0.5, horizon - 1: 2.0}
        weighted = population_loss(model, process, NextToken(horizon, weights))
        assert float(weighted.value) == pytest.approx(formula(law, dim, a * b, weights), rel=1e-12)


@every_law
@pytest.mark.parametrize("engine", [ExactMoments(), Enumeration(), MonteCarlo(50_000)], ids=str)
def test_the_loss_of_predicting_zero(law, engine):
    """½ Σ_t w_t E‖x_{t+1}‖² = ½ Σ_t w_t d m2: the unit in which losses are large or small."""
    task, zero = NextToken(4, [0.5, 2.0]), LinearAttention.diagonal(2, 0.0, 0.0)
    estimate = population_loss(zero, DiagonalUnitary(law, 2), task, engine)
    expected = 0.5 * 2.5 * 2 * MOMENTS[law](2)[0]
    # exact up to rounding, or sampled within five standard errors
    off = 5 * float(estimate.standard_error) + 1e-13 * expected
    assert float(estimate.value) == pytest.approx(expected, abs=off)


@every_law
def test_the_limit_product_minimizes_the_loss(law):
    """c* = κ1/(κ2 + κ3/(T − 2) Σ_t 1/(t − 1)) (Theorem 4.1; with masked gradients, Theorem 4.3)."""
    dim, horizon = 5, 100
    _, kappa1, kappa2, one = MOMENTS[law](dim)
    mean = fsum(1 / (t - 1) for t in range(2, horizon)) / (horizon - 2)
    limit = kappa1 / (kappa2 + (dim - 1) * one * mean)
    process, task = DiagonalUnitary(law, dim), NextToken(horizon)

    def loss(c):
        return float(population_loss(LinearAttention.diagonal(dim, c, 1.0), process, task).value)

    # the vertex of the parabola through three points of the loss
    low, middle, high = loss(0.0), loss(limit), loss(2 * limit)
    assert low == pytest.approx(high, rel=1e-11)
    assert middle < low
    if law == Sparse(2):
        assert limit == pytest.approx(1 / 4, rel=1e-14)  # 1/c² for one-hot tokens of size c
        assert middle == pytest.approx(0, abs=1e-12 * low)  # and then every prediction is right


def test_the_published_limit_of_standard_gaussian_tokens():
    harmonic = fsum(1 / (t - 1) for t in range(2, 100)) / 98
    limit = 3 / (15 + 4 * 3 * harmonic)
    assert limit == pytest.approx(0.19190508852558863, rel=1e-14)
    process, task = DiagonalUnitary(Gaussian(1), 5), NextToken(100)
    losses = [
        float(population_loss(LinearAttention.diagonal(5, np.sqrt(c), np.sqrt(c)), process, task).value)
        for c in (0.9 * limit, limit, 1.1 * limit)
    ]
    assert losses[0] == pytest.approx(losses[2], rel=1e-13) and losses[1] < losses[0]
