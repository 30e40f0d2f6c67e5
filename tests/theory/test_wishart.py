import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from mesascope.theory._wishart import wishart_mean

SIZES = [(1, 1), (1, 7), (2, 2), (2, 9), (3, 4), (5, 3), (10, 20), (11, 20), (20, 40), (24, 24)]


@pytest.mark.parametrize(("d", "n"), SIZES)
def test_moments(d, n):
    # E tr W = dn, E tr W² = dn(n + d + 1); sums of thousands of terms of double precision
    for power, expected in ((0, d), (1, d * n), (2, d * n * (n + d + 1))):
        assert wishart_mean(lambda s, p=power: s**p, d, n) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("d", "n"), [(1, 4), (2, 9), (10, 20), (11, 20), (20, 40)])
def test_the_mean_inverse(d, n):
    assert wishart_mean(lambda s: 1 / s, d, n) == pytest.approx(d / (n - d - 1), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_one_dimension_is_a_chi_squared_variable(n):
    expected, _ = quad(lambda s: chi2.pdf(s, n) / (1 + s), 0, np.inf, epsabs=1e-12, epsrel=1e-12)
    # the density of one example, s^{-1/2}, costs `quad` some digits
    assert wishart_mean(lambda s: 1 / (1 + s), 1, n) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("d", "n"), [(3, 2), (3, 3), (4, 6), (7, 9)])
def test_sampled_matrices(d, n):
    x = np.random.default_rng([d, n]).normal(size=(40_000, n, d))
    found = (1 / (2 + np.linalg.eigvalsh(np.swapaxes(x, 1, 2) @ x))).sum(-1)
    error = found.std(ddof=1) / len(found) ** 0.5
    assert abs(found.mean() - wishart_mean(lambda s: 1 / (2 + s), d, n)) < 4 * error


def test_bad_sizes():
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        wishart_mean(np.sqrt, 0, 3)
    with pytest.raises(TypeError, match="examples must be an integer"):
        wishart_mean(np.sqrt, 2, 2.5)
