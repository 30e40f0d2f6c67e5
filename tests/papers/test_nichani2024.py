"""The mean information of positions with two parents, against integrals of one variable and drawn tables."""

from itertools import product
from math import comb, factorial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from mesascope.papers.nichani2024 import _information


def entropy(p):
    return -sum(x * np.log(x) for x in (p, 1 - p) if x > 0)


def of_uniform_means(count):
    """E h of the mean of uniform numbers, by their Irwin–Hall density."""

    def density(total):
        terms = ((-1) ** k * comb(count, k) * max(total - k, 0.0) ** (count - 1) for k in range(count + 1))
        return sum(terms) / factorial(count - 1)

    return quad(
        lambda total: density(total) * entropy(total / count), 0, count, points=range(count), epsabs=1e-11
    )[0]


def test_the_first_child_tells_what_one_integral_says():
    """s_3 is 1 with the mean of four uniform chances; given one of its parents, with the mean of two."""
    found = _information._mean_information(3, 2, 1.0, 16)
    expected = of_uniform_means(4) - of_uniform_means(2)
    np.testing.assert_allclose(
        found[2, :2], expected, rtol=1e-4
    )  # from 12 to 16 nodes it changes by 2e-5 of itself
    assert found[2, 2] == pytest.approx(of_uniform_means(4), rel=1e-5)


@pytest.mark.slow
def test_the_last_position_of_a_chain_of_order_two_on_drawn_tables():
    """Loops over drawn tables and sequences; means within four standard errors."""
    alpha, positions, rng = 0.1, 5, np.random.default_rng(0)
    drawn = beta.rvs(alpha, alpha, size=(400, 2, 2), random_state=rng)
    told = np.zeros((len(drawn), positions - 1))
    for chances, row in zip(drawn, told, strict=True):
        pairs = np.zeros((positions - 1, 2, 2))
        for s in product(range(2), repeat=positions):
            p = 0.25
            for i in range(2, positions):
                one = chances[s[i - 2], s[i - 1]]
                p *= one if s[i] else 1 - one
            for j in range(positions - 1):
                pairs[j, s[j], s[-1]] += p
        for j, joint in enumerate(pairs):
            margins = np.outer(joint.sum(1), joint.sum(0))
            known = joint > 0
            row[j] = np.sum(joint[known] * np.log(joint[known] / margins[known]))
    mean = _information._mean_information(positions, 2, alpha, 12)[-1, :-1]
    assert (abs(told.mean(0) - mean) <= 4 * told.std(0) / len(drawn) ** 0.5).all()
