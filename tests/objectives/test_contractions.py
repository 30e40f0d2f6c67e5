"""The list of contractions, added up as loops over coordinates."""

from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np
import pytest
from flint import fmpq

import mesascope as ms
from mesascope.objectives import contractions, loss_polynomial


def added(found, values, w_kq, w_pv, dim):
    """Σ coefficient × Σ over different coordinates, in rational numbers."""
    matrices = {"A": w_pv.T @ w_pv, "K": w_kq, "P": w_pv}
    total = Fraction(0)
    for one in found:
        coefficient = one.coefficient.subs(values).doit()
        sums = Fraction(0)
        for chosen in permutations(range(dim), len(one.indices)):
            at = dict(zip(one.indices, chosen, strict=True))
            sums += prod(
                matrices[factor.matrix][
                    factor.block[0] * dim + at[factor.indices[0]],
                    factor.block[1] * dim + at[factor.indices[1]],
                ]
                for factor in one.factors
            )
        total += Fraction(int(coefficient.p), int(coefficient.q)) * sums
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "dim", "horizon", "normalizer", "moments"),
    [
        (ms.Gaussian(1), 2, 9, "t-1", {"m_2": 1, "m_4": 3, "m_6": 15}),
        (ms.Constant(2), 4, 3, "1", {f"m_{n}": 2**n for n in range(1, 7)}),
    ],
)
def test_they_add_up_to_the_loss(law, dim, horizon, normalizer, moments):
    rng = np.random.default_rng(horizon)
    process, task = ms.DiagonalUnitary(law, dim), ms.NextToken(horizon)
    w_kq, w_pv = (
        np.vectorize(lambda n: Fraction(int(n), 4))(rng.integers(-9, 10, shape))
        for shape in ((2 * dim, 2 * dim), (dim, 2 * dim))
    )
    found = contractions(process, task, normalizer=normalizer)
    exact = added(found, {**moments, "d": dim, "T": horizon}, w_kq, w_pv, dim)
    theta = [fmpq(x.numerator, x.denominator) for x in (*w_kq.flat, *w_pv.flat)]
    assert str(exact) == str(loss_polynomial(process, task, normalizer).value(theta))
    model = ms.LinearAttention(w_kq.astype(float), w_pv.astype(float), normalizer)
    listed = ms.population_loss(model, process, task, ms.Enumeration()).value
    assert float(exact) == pytest.approx(float(listed), rel=1e-12)  # rounding of the quadrature


@pytest.mark.slow
def test_how_they_are_written():
    found = contractions(ms.DiagonalUnitary(ms.Gaussian(1), 3), ms.NextToken(9))
    texts = {one.text for one in found}
    assert "m_4*(2 - T) sum_{i} P00[i,i] K10[i,i]" in texts and "d*m_2*(T - 2)/2" in texts
    assert all(one.latex and repr(one) == f"Contraction({one.text})" for one in found)


def test_coordinates_must_be_exchangeable():
    with pytest.raises(ValueError, match=r"law: moments of Constant.* depend on the coordinate; use formula"):
        contractions(ms.DiagonalUnitary(ms.Constant([1, 2]), 2), ms.NextToken(9))
