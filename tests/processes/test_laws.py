"""Tests of single laws: textbook moments, and the input that each refuses."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from mesascope.core import named_key
from mesascope.processes import (
    Constant,
    Empirical,
    Gaussian,
    IdenticalLaw,
    Mixture,
    MomentError,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.specs import Scale, component


@pytest.mark.parametrize(
    ("law", "moments"),
    [
        (Gaussian(2), [1, 0, 4, 0, 48, 0, 960, 0, 26880]),
        (Rademacher("1/2"), [1, 0, "1/4", 0, "1/16", 0, "1/64", 0, "1/256"]),
        (Uniform(1), [1, 0, "1/3", 0, "1/5", 0, "1/7", 0, "1/9"]),
        (StudentT(10), [1, 0, "5/4", 0, "25/4", 0, "625/8", 0, "21875/8"]),
        (Constant(-2), [1, -2, 4, -8, 16, -32, 64, -128, 256]),
    ],
)
def test_textbook_moments(law, moments):
    assert [law.moment(n) for n in range(9)] == [Fraction(m) for m in moments]


@pytest.mark.parametrize(
    ("law", "density"),
    [
        (Gaussian(0.7), scipy.stats.norm(scale=0.7)),
        (Uniform(0.7), scipy.stats.uniform(-0.7, 1.4)),
        (StudentT(7.5, 0.7), scipy.stats.t(7.5, scale=0.7)),
        (StudentT(30), scipy.stats.t(30)),
    ],
)
def test_moments_and_rules_against_the_density(law, density):
    nodes, weights = law.line_rule()
    for order in range(7):
        integral, error = scipy.integrate.quad(
            lambda x, n=order: x**n * density.pdf(x),
            *density.support(),
            epsabs=1e-12,
            epsrel=1e-12,
            limit=500,
        )
        tolerance = max(10 * error, 1e-10)  # quad's own estimate of its error, with room
        assert float(law.moment(order)) == pytest.approx(integral, abs=tolerance)
        assert weights @ nodes**order == pytest.approx(integral, abs=tolerance)


@pytest.mark.parametrize(
    ("law", "density"),
    [
        (Gaussian(0.7), scipy.stats.norm(scale=0.7)),
        (Uniform(0.7), scipy.stats.uniform(-0.7, 1.4)),
        (StudentT(7, 0.7), scipy.stats.t(7, scale=0.7)),
        (StudentT("3/2"), scipy.stats.t(1.5)),
    ],
)
def test_samples_have_the_distribution(law, density):
    seed = 0
    sample = np.asarray(law.sample(named_key(seed, "distribution"), 5, (2000,))).ravel()
    p_value = scipy.stats.kstest(sample, density.cdf).pvalue
    assert p_value > 1e-3, f"seed {seed}"


@pytest.mark.parametrize(
    ("df", "order"), [(1, 1), (2, 2), (3, 3), (4, 4), ("9/2", 5), (5, 5), (6, 6), (5.9, 6)]
)
def test_heavy_tails_are_refused_with_the_moment_that_fails(df, order):
    law = StudentT(df)
    message = rf"E x\^{order} does not exist for StudentT\(df={df}, scale=1\): .* take df > 6"
    for call in (lambda: law.moment(order), lambda: law.product_terms(2), lambda: law.quadrature(2)):
        with pytest.raises(MomentError, match=message):
            call()
    assert law.moment(order - 1) is not None
    # It is still a law to draw from.
    assert law.sample(named_key(0), 2, (3,)).shape == (3, 2)


def test_a_mixture_reports_the_missing_moment_of_its_part():
    law = Mixture([("1/2", Gaussian()), ("1/2", StudentT(4))])
    assert law.moment(2) == Fraction(3, 2)
    with pytest.raises(MomentError, match=r"E x\^4 does not exist for StudentT\(df=4"):
        law.moment(4)


def test_student_refuses_impossible_degrees_of_freedom():
    for df in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="StudentT df must be"):
            StudentT(df)


def test_sparse_moments_depend_on_the_dimension():
    law = Sparse(2)
    assert law.moment(4, 5) == Fraction(16, 5)
    assert law.moment(0) == 1
    assert law.moment(3) == 0
    with pytest.raises(
        ValueError, match=r"E x\^4 of Sparse\(scale=2\) depends on the dimension: call moment"
    ):
        law.moment(4)
    assert law.joint_moment((2, 2), 5) == 0
    sample = np.asarray(law.sample(named_key(0), 5, (100,)))
    np.testing.assert_array_equal(np.sort(abs(sample), axis=1), np.tile([0, 0, 0, 0, 2.0], (100, 1)))


def test_constant_reads_vectors_and_numbers():
    assert Constant(np.array([1.0, 2.0])) == Constant([1, 2]) == Constant((1, "2"))
    assert Constant(np.float64(3)).entries(2) == (3, 3)
    assert Constant([2, 2]).exchangeable
    assert Constant([2, 2]).fixed_dim == 2
    assert Constant(0).even
    assert not Constant(1).even
    np.testing.assert_array_equal(Constant(["1/2", 3]).sample(named_key(0), 2, (2,)), [[0.5, 3], [0.5, 3]])


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([], ValueError, "an empty list"),
        ([1, float("inf")], ValueError, r"Constant value\[1\] must be finite"),
        (float("nan"), ValueError, "Constant value must be finite"),
        ([[1, 2], [3, 4]], TypeError, r"Constant value\[0\] must be a number"),
        (np.ones((2, 2)), TypeError, r"Constant value\[0\] must be a number"),
        (None, TypeError, "Constant value must be a number"),
    ],
)
def test_constant_refuses(value, error, message):
    with pytest.raises(error, match=message):
        Constant(value)


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ([], ValueError, "must list parts .*, at least one"),
        ([("1/2", Gaussian())], ValueError, r"must sum to 1, not 0\.5"),
        ([("1/3", Gaussian()), (2 / 3, Sparse()), (1e-9, Sparse())], ValueError, "must sum to 1"),
        ([("1/3", Gaussian()), ("0.667", Sparse())], ValueError, "must sum to 1"),
        ([(2, Gaussian()), (-1, Sparse())], ValueError, r"parts\[1\].probability must not be negative"),
        ([(float("nan"), Gaussian())], ValueError, r"parts\[0\].probability must be finite"),
        ([(None, Gaussian())], TypeError, r"parts\[0\].probability must be a number"),
        ([Gaussian()], TypeError, r"parts\[0\] must be a pair \(probability, law\), got Gaussian"),
        ([(1, "gausian")], ValueError, r"parts\[0\].law.kind unknown kind .*did you mean 'gaussian'"),
        ([(Gaussian(), 1)], TypeError, r"parts\[0\].probability must be a number"),
        (
            [("1/2", Constant([1, 2])), ("1/2", Constant([1, 2, 3]))],
            ValueError,
            r"different dimensions \[2, 3\]",
        ),
    ],
)
def test_mixture_refuses(parts, error, message):
    with pytest.raises(error, match=message):
        Mixture(parts)


def test_mixture_probabilities():
    # 0.1 + 0.2 + 0.7 is not 1 in floating point, nor as rationals; thirds as strings are exact.
    rounded = Mixture([(0.1, Gaussian()), (0.2, Sparse()), (0.7, Uniform())])
    assert sum(p for p, _ in rounded.weighted) == 1
    thirds = Mixture([("1/3", Gaussian(1)), ("2/3", Gaussian(2))])
    assert thirds.moment(2) == 3
    assert thirds.describe() == "Mixture(1/3 Gaussian(scale=1), 2/3 Gaussian(scale=2))"
    # A part of probability 0 has no effect, even if it has a missing moment or an asymmetry.
    assert Mixture([(1, Gaussian()), (0, StudentT(1)), (0, Constant([1, 2]))]).moment(6) == 15


def test_mixture_draws_whole_tokens_from_one_part():
    sample = np.asarray(
        Mixture([("1/4", Constant(1)), ("3/4", Constant(2))]).sample(named_key(0), 4, (4000,))
    )
    assert (sample == sample[:, :1]).all()
    ones = (sample[:, 0] == 1).mean()
    assert ones == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 4000) ** 0.5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "are empty"),
        ((np.zeros((0, 3)),), ValueError, "empty"),
        (([1.0, np.nan],), ValueError, r"samples\[1\] must be finite"),
        ((np.array([1.0, np.nan]),), ValueError, r"entry \(1,\) is nan; change it"),
        (([[1.0, 2.0], [np.inf, 0.0]],), ValueError, r"samples\[1\]\[0\] must be finite"),
        ((1.0,), TypeError, "must be a list of numbers, got 1.0"),
        ((np.array(1.0),), ValueError, r"must have shape \(n,\) or \(n, d\), got \(\)"),
        ((np.zeros((1, 2, 3)),), ValueError, r"got \(1, 2, 3\)"),
        ((["a"],), ValueError, r"samples\[0\] 'a' is not a rational number"),
        ((np.array([1j]),), TypeError, "must be real numbers, got an array of complex128"),
        (([True],), TypeError, r"samples\[0\] must be a number, got true"),
        (([1.0], True), ValueError, r"joint needs samples of shape \(n, d\)"),
        (([[1.0]], 1), TypeError, "joint must be true or false, got 1"),
    ],
)
def test_empirical_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        Empirical(*arguments)


def test_empirical_moments_are_exact():
    values = [0.1, -0.7, 1e-3, 12345.678]
    law = Empirical(values)
    for order in range(9):
        assert law.moment(order) == sum(Fraction(v) ** order for v in values) / 4


def test_empirical_keeps_dependence_only_when_joint():
    rows = [[1.0, 1.0], [-1.0, -1.0]]
    assert Empirical(rows, joint=True).joint_moment((1, 1), 2) == 1
    assert Empirical(rows).joint_moment((1, 1), 2) == 0
    assert Empirical(rows) == Empirical(np.array(rows))
    assert Empirical(rows) != Empirical(rows, joint=True)
    assert not Empirical(rows, joint=True).even
    assert Empirical(rows).even
    sample = np.asarray(Empirical(rows, joint=True).sample(named_key(0), 2, (50,)))
    np.testing.assert_array_equal(sample[:, 0], sample[:, 1])


def test_empirical_compares_by_content():
    assert Empirical([0.0, 1.0]) == Empirical([-0.0, 1.0])
    assert Empirical([0.0, 1.0]) != Empirical([1.0, 0.0])  # another order draws other samples
    assert Empirical([[0.0], [1.0]]) != Empirical([0.0, 1.0])
    samples = np.array([1.0, 2.0])
    law = Empirical(samples)
    samples[0] = 5  # the law keeps what it was given
    assert law == Empirical([1.0, 2.0])


def test_repeated_rows_become_one_term():
    law = Empirical([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0], [0.0, -0.0]], joint=True)
    assert sorted(p for p, _ in law.product_terms(2)) == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    assert law.zero_probability(2) == Fraction(3, 8)


def test_a_moment_beyond_the_range_of_floats_is_told():
    @component
    class Powers(IdenticalLaw):
        """Powers of a float, which Python raises an error for where they overflow."""

        scale: Scale = 1

        def line_moment(self, order):
            return float(self.scale) ** order if order % 2 == 0 else 0

        def sample(self, key, dim, shape=()):
            """Not drawn."""

    with pytest.raises(ValueError, match=r"E x\^8 of Powers.* must be finite .*got inf"):
        Powers(scale=1e50).moment(8)
