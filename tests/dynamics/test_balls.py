"""Balls hold what they say, whatever is rounded."""

import random
from fractions import Fraction

import pytest
from flint import arb

from mesascope.dynamics.certificates._balls import as_fmpq, ball, ends, midpoint, precision, rounded, upper


@pytest.mark.parametrize("bits", [64, 200])
def test_a_ball_holds_its_ends(bits):
    rng = random.Random(0)
    with precision(bits):
        for _ in range(2000):
            centre = Fraction(rng.randint(-(10**9), 10**9), rng.randint(1, 10**9))
            radius = Fraction(rng.randint(1, 10**6), 10 ** rng.randint(1, 60))
            found = ball(centre, radius)
            assert found.contains(as_fmpq(centre + radius)) and found.contains(as_fmpq(centre - radius))
            low, high = ends(found)
            assert low <= centre - radius < centre + radius <= high
            assert upper(found) >= max(abs(low), abs(high))


def test_a_ball_without_radius_is_as_narrow_as_the_precision_allows():
    with precision(100):
        assert ball(Fraction(1, 4), Fraction(0)).is_exact()
        assert ball(Fraction(1, 3), Fraction(0)).rad() < arb(2) ** -98


def test_midpoints_are_exact_and_roundings_nearest():
    assert midpoint(arb(3) / 8) == Fraction(3, 8)
    assert midpoint(arb(-5) * 2**70) == -5 * 2**70
    assert rounded(Fraction(2, 3), 3) == Fraction(667, 1000)


def test_precision_ends_with_its_block():
    from flint import ctx

    before = ctx.prec
    with pytest.raises(ZeroDivisionError), precision(333):
        assert ctx.prec == 333
        raise ZeroDivisionError
    assert ctx.prec == before
