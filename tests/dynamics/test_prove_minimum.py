"""Local minima of functions of few variables, proved with balls."""

import re
from fractions import Fraction

import pytest

from mesascope.dynamics.certificates import NotProvedError, prove_minimum


class Well:
    """(x² − 2)² + sign · y²: minima at x = ±√2 for sign 1, saddles for −1; x = 0 is no minimum."""

    def __init__(self, sign):
        self.sign = sign

    def value(self, theta):
        x, y = theta
        return (x * x - 2) * (x * x - 2) + self.sign * y * y

    def gradient(self, theta):
        x, y = theta
        return [4 * x * (x * x - 2), 2 * self.sign * y]

    def hessian(self, theta):
        x, _ = theta
        return [[12 * x * x - 8, 0 * x], [0 * x, 2 * self.sign + 0 * x]]


def test_the_centre_is_a_root_to_all_its_digits():
    x, y = prove_minimum(Well(1), [1.4, 0.1], 30)
    end = Fraction(1, 10**30)
    assert (x - end) ** 2 < 2 < (x + end) ** 2
    assert abs(y) <= end


@pytest.mark.parametrize(
    ("sign", "guess", "words"), [(-1, [1.4, 0.1], "1 curvatures"), (1, [0.01, 0.1], "1 curvatures")]
)
def test_saddles_are_refused(sign, guess, words):
    with pytest.raises(
        NotProvedError, match=re.escape(f"the critical point is no minimum: {words} are positive")
    ):
        prove_minimum(Well(sign), guess, 20)
