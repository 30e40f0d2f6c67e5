"""Exact spectral moments, compared with quadrature over the spectrum and with a single example."""

from fractions import Fraction
from math import comb, prod

import pytest

from mesascope.core import mean_of_polynomial, wishart_moment
from mesascope.theory import ahn2023, gatmiry2024
from mesascope.theory._wishart import wishart_mean


@pytest.mark.parametrize(("d", "n"), [(1, 4), (3, 2), (5, 9), (10, 20)])
def test_moments_are_means_over_the_spectrum(d, n):
    for order in (0, 1, 2, 3, 5, 8, 13):
        expected = wishart_mean(lambda s, k=order: s**k, d, n)
        assert wishart_moment(order, d, n) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [1, 4, 40])
def test_one_example_is_a_chi_squared_variable(order):
    """The only eigenvalue is |x|², with moments d (d + 2) … (d + 2k − 2): equal as integers."""
    assert wishart_moment(order, 6, 1) == prod(6 + 2 * k for k in range(order))


def test_losses_tend_to_the_marchenko_pastur_law_as_one_over_the_dimension():
    """Moments per dimension tend to Σ_r c^r C(k, r) C(k − 1, r)/(r + 1), c = d/n, and so does the loss of three steps."""
    a, c, steps = Fraction(1, 2), Fraction(1, 3), 3

    def limit(k):
        return sum(c**r * comb(k, r) * comb(k - 1, r) / Fraction(r + 1) for r in range(k)) if k else 1

    expected = sum(comb(2 * steps, k) * (-a) ** k * limit(k) for k in range(2 * steps + 1))
    gaps = [
        2 * ahn2023.multiples_loss([a] * steps, d, 3 * d) / d - expected for d in (100, 200)
    ]  # rational numbers
    assert float(gaps[1] / gaps[0]) == pytest.approx(0.5, rel=0.02)  # the next order is 1/d²


def test_dimension_and_examples_can_be_exchanged():
    assert wishart_moment(7, 3, 11) == wishart_moment(7, 11, 3)


@pytest.mark.parametrize(("loops", "examples"), [(1, 6), (4, 20), (12, 40)])
def test_losses_of_loops_are_means_over_the_spectrum(loops, examples):
    a, d = 0.8, 4
    expected = wishart_mean(lambda s: (1 - a * s / examples) ** (2 * loops), d, examples)
    assert gatmiry2024.multiple_loss(a, d, examples, loops) == pytest.approx(expected, rel=1e-11)
    assert 2 * float(ahn2023.multiples_loss([a] * loops, d, examples)) == pytest.approx(expected, rel=1e-11)


def test_losses_of_different_steps_with_noise_are_means_over_the_spectrum():
    multiples, d, n, noise = [1.2, 0.5, 0.3, 0.9], 3, 12, 0.7

    def risk(w):
        s = w / n
        left = prod(1 - a * s for a in multiples)
        return left**2 + noise**2 / n * (1 - left) ** 2 / s

    expected = (wishart_mean(risk, d, n) + noise**2) / 2
    assert float(ahn2023.multiples_loss(multiples, d, n, noise)) == pytest.approx(expected, rel=1e-11)


def test_twenty_steps_in_one_dimension_are_exact():
    """Equal as rational numbers to the sum with the moments of χ²(n)/n."""
    n, a, steps = 5, Fraction(1, 3), 20
    terms = [
        comb(2 * steps, k) * (-a / n) ** k * prod(n + 2 * i for i in range(k)) for k in range(2 * steps + 1)
    ]
    assert 2 * ahn2023.multiples_loss([a] * steps, 1, n) == sum(terms)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="multiples must have at least one entry, got none"):
        ahn2023.multiples_loss([], 2, 3)
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        mean_of_polynomial([1], 0, 3)
