"""The minimization of squared distances, on a parabola."""

import numpy as np
import pytest

from mesascope.probes._least_squares import minimize


class Parabola:
    """The cost 1 + (x − 2)², of which the residuals are 1 and x − 2; it counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, coordinates):
        self.asked += 1
        off = coordinates - 2
        return 1 + off**2, off, np.ones((len(off), 1, 1))


@pytest.mark.parametrize(("start", "asked"), [(2.0, 1), (2.0 + 1e-8, 1), (2.1, 3)])
def test_it_ends_where_a_step_promises_nothing(start, asked):
    equations = Parabola()
    end = minimize(equations, np.array([[start]]), 1e-13)
    assert end.point[0] == pytest.approx(2, abs=1e-6)
    assert end.cost == pytest.approx(1, abs=1e-12)
    assert equations.asked == asked
