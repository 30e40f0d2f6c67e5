"""Enumeration, compared with an independent enumeration in numpy with other quadrature rules and roots."""

import itertools

import numpy as np
import pytest

from mesascope.models import LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import Enumeration, ExactMoments, population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    NextToken,
    Rademacher,
    Sparse,
    Uniform,
)

ROOTS = 31  # a prime above 3T for T ≤ 10: no sum of exponents in the loss is a multiple of it but zero
ENGINES = pytest.mark.parametrize("engine", [Enumeration(), ExactMoments()], ids=["enumeration", "exact"])


def atoms(law, dim):
    """The law as a finite list of (probability, token), exact for polynomials of degree 6 in each coordinate."""
    if isinstance(law, Gaussian | Uniform | Rademacher):
        if isinstance(law, Gaussian):
            nodes, weights = np.polynomial.hermite_e.hermegauss(5)
        elif isinstance(law, Uniform):
            nodes, weights = np.polynomial.legendre.leggauss(5)
        else:
            nodes, weights = np.array([-1.0, 1.0]), np.ones(2)
        grid = itertools.product(
            zip(float(law.scale) * nodes, weights / weights.sum(), strict=True), repeat=dim
        )
        return [(np.prod([w for _, w in point]), [x for x, _ in point]) for point in grid]
    if isinstance(law, Sparse):
        return [(1 / (2 * dim), sign * float(law.scale) * row) for row in np.eye(dim) for sign in (-1, 1)]
    if isinstance(law, Constant):
        return [(1.0, np.broadcast_to(np.array(law.value, float), dim))]
    if isinstance(law, Mixture):
        return [(float(p) * q, x) for p, part in law.parts for q, x in atoms(part, dim)]
    rows = np.asarray(law.samples.table)
    return [(1 / len(rows), row) for row in rows]


def listed_loss(w_kq, w_pv, rho, weights, law, dim, horizon):
    """Σ over atoms of the law and roots of unity of Σ_t w_t ½ ‖ŷ_t − x_{t+1}‖², by the definition."""
    points = atoms(law, dim)
    probability = np.array([p for p, _ in points])
    initial = np.array([x for _, x in points], float)
    circle = np.exp(2j * np.pi * np.arange(ROOTS) / ROOTS)
    total = 0.0
    for spectrum in itertools.product(circle, repeat=dim):
        tokens = initial[:, None] * np.array(spectrum) ** np.arange(horizon)[:, None]  # (n, T, d)
        before = np.concatenate([np.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)
        e = np.concatenate([tokens, before], 2)
        for t, weight in weights.items():
            context = e[:, :t]
            gram = np.einsum("nia,nib->nab", context, context.conj()) / rho(t)
            prediction = sum(
                np.einsum("ka,nab,bc,nc->nk", pv, gram, kq, e[:, t - 1], optimize=True)
                for kq, pv in zip(w_kq, w_pv, strict=True)
            )
            errors = abs(prediction - tokens[:, t]) ** 2  # x_{t+1}
            total += weight / 2 * probability @ errors.sum(1)
    return total / ROOTS**dim


@ENGINES
@pytest.mark.parametrize(
    "law",
    [
        Gaussian(0.9),
        Uniform(1.5),
        Rademacher("3/4"),
        Sparse(1.25),
        Constant([1.0, -0.5]),
        Empirical([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]], joint=True),
        Mixture([("1/4", Sparse(2)), ("3/4", Constant(1))]),
    ],
    ids=lambda law: type(law).__name__,
)
def test_loss_in_two_dimensions(law, engine):
    rng = np.random.default_rng(5)
    w_kq = 0.5 * (rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)))
    w_pv = 0.5 * (rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4)))
    weights = {2: 1.0, 3: 0.25, 5: 2.0}
    expected = listed_loss(w_kq[None], w_pv[None], lambda t: t - 1, weights, law, 2, 6)
    loss = population_loss(
        LinearAttention(w_kq, w_pv), DiagonalUnitary(law, 2), NextToken(6, weights), engine
    )
    # some 10⁵ terms of one sign, each good to 1e-15: far better than the promised 1e-10
    assert float(loss.value) == pytest.approx(expected, rel=1e-12)
    assert float(loss.standard_error) == 0


@ENGINES
@pytest.mark.parametrize(
    "law", [Gaussian(1.1), Constant(-2.0), Empirical([1.0, 0.5, -2.0])], ids=lambda law: law.describe()
)
def test_loss_in_one_dimension_with_two_heads(law, engine):
    rng = np.random.default_rng(6)
    w_kq, w_pv = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 1, 2))
    weights = dict.fromkeys(range(2, 9), 1.0)
    expected = listed_loss(w_kq, w_pv, lambda t: t, weights, law, 1, 9)
    model = MultiHeadLinearAttention(w_kq, w_pv, "t")
    loss = population_loss(model, DiagonalUnitary(law, 1), NextToken(9), engine)
    assert float(loss.value) == pytest.approx(expected, rel=1e-12)
