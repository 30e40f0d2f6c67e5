"""Laws given by moments: the check that moments are possible, and the atoms that represent them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mesascope.processes import MAX_ORDER, Gaussian, MomentError, Moments, Rademacher, Uniform

rationals = st.fractions(min_value=-3, max_value=3, max_denominator=8)


@st.composite
def atoms(draw, most=6):
    """Distinct rational atoms with positive rational probabilities."""
    points = draw(st.lists(rationals, min_size=1, max_size=most, unique=True))
    masses = [draw(st.integers(1, 8)) for _ in points]
    return points, [Fraction(m, sum(masses)) for m in masses]


def moments_of(points, masses):
    return [sum(p * x**n for x, p in zip(points, masses, strict=True)) for n in range(MAX_ORDER + 1)]


@pytest.mark.slow
@given(atoms())
def test_every_distribution_is_accepted_and_its_moments_reproduced(distribution):
    moments = moments_of(*distribution)
    law = Moments(moments)
    nodes, weights = law.line_rule()
    assert len(nodes) == min(4, len(distribution[0]))
    for order, moment in enumerate(moments):
        size = weights @ abs(nodes) ** order
        assert law.moment(order) == moment
        # A four-point rule reproduces its moments to a few units in the last place of the largest summand.
        assert weights @ nodes**order == pytest.approx(float(moment), abs=1e-13 * max(size, 1))


@given(atoms(most=3))
def test_few_atoms_are_found_exactly(distribution):
    points, masses = distribution
    assume(min([1, *abs(np.diff(sorted(map(float, points))))]) >= 1 / 8)
    nodes, weights = Moments(moments_of(points, masses)).line_rule()
    order = np.argsort([float(x) for x in points])
    np.testing.assert_allclose(nodes, np.array(points, float)[order], atol=1e-9)
    np.testing.assert_allclose(weights, np.array(masses, float)[order], atol=1e-9)


@pytest.mark.slow
@given(atoms(), st.integers(1, 3), st.fractions(min_value="1/1000", max_value=1, max_denominator=1000))
def test_a_moment_below_its_minimum_is_refused(distribution, half, excess):
    # On k atoms the moment of order 2k is the least that the moments before it allow.
    points, masses = distribution
    assume(len(points) <= half)
    moments = moments_of(points, masses)
    moments[2 * half] -= excess
    with pytest.raises(ValueError, match="no distribution has these moments"):
        Moments(moments)


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ([1, 0, -1, 0, 3, 0, 15], r"orders 0 to 2 has a negative determinant; E x\^2 = -1 is too small"),
        ([1, 0, 1, 0, "1/2", 0, 15], r"orders 0 to 4 has a negative determinant; E x\^4 = 1/2 is too small"),
        ([1, 0, 1, 0, 3, 0, 8], r"orders 0 to 6 has a negative determinant; E x\^6 = 8 is too small"),
        ([1, 0, 0, 0, 0, 0, 1], r"orders 0 to 2 leave only 1 possible value, which contradict.* E x\^6 = 1$"),
        ([1, 0, 1, 0, 1, 0, 2], r"orders 0 to 4 leave only 2 possible values, which contradict E x\^6 = 2$"),
        ([1, 0, 1, 0, 1, 1, 1], r"orders 0 to 4 leave only 2 possible values, which contradict E x\^5 = 1$"),
        ([2, 0, 1, 0, 3, 0, 15], r"E x\^0 must be 1, got 2; divide"),
        ([1, 0, 1, 0, 3, 0], "must be the 7 numbers .*, got 6"),
        ([1, 0, 1, 0, 3, 0, 15, 0], "must be the 7 numbers .*, got 8"),
        ([1, 0, float("nan"), 0, 3, 0, 15], r"moments\[2\] must be finite"),
        ([1, 0, "x", 0, 3, 0, 15], r"moments\[2\] 'x' is not a rational"),
    ],
)
def test_impossible_lists_are_refused_with_the_order(moments, message):
    with pytest.raises(ValueError, match=message):
        Moments(moments)


def test_entries_of_the_wrong_type():
    with pytest.raises(TypeError, match=r"Moments moments\[1\] must be a number"):
        Moments([1, None, 1, 0, 3, 0, 15])


@pytest.mark.parametrize("scale", [0.1, 0.3, 1 / 3, 7.7, 1e-3, 1e3])
def test_floats_on_the_boundary_are_accepted(scale):
    # The powers of 0.1 as floats are no exact powers: by rational arithmetic alone the list is impossible, or
    # has a third atom far away.
    law = Moments([scale**n * (n % 2 == 0) for n in range(7)])
    nodes, weights = law.line_rule()
    np.testing.assert_allclose(nodes, [-scale, scale], rtol=1e-12)
    np.testing.assert_allclose(weights, [0.5, 0.5], rtol=1e-12)


def test_a_constant_and_zero():
    nodes, weights = Moments([1, 2, 4, 8, 16, 32, 64]).line_rule()
    assert (nodes, weights) == (2, 1)
    zero = Moments([1, 0, 0, 0, 0, 0, 0])
    assert zero.line_rule().nodes == 0
    assert zero.zero_probability(3) == 1


@pytest.mark.parametrize("law", [Gaussian("3/2"), Uniform(2)])
def test_classical_rules_are_recovered_from_the_moments(law):
    # Gauss–Hermite and Gauss–Legendre are the rules that the first seven moments determine.
    ours, classical = Moments([law.moment(n) for n in range(7)]).line_rule(), law.line_rule()
    np.testing.assert_allclose(ours.nodes, classical.nodes, rtol=1e-13)
    np.testing.assert_allclose(ours.weights, classical.weights, rtol=1e-13)


def test_symmetry_is_decided_by_the_odd_moments():
    assert Moments([1, 0, 1, 0, 3, 0, 15]).even
    assert not Moments([1, 0, 1, "1/10", 3, 0, 15]).even


def test_moments_beyond_the_list_are_unknown():
    with pytest.raises(MomentError, match=r"E x\^7 is not known for Moments\(1, 0, 1, .*given to order 6"):
        Moments([1, 0, 1, 0, 3, 0, 15]).moment(7)
    assert Rademacher().moment(7) == 0
