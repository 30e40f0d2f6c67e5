"""When searches from several initial values end."""

import numpy as np

from mesascope.probes._least_squares import minimize


class _Landscape:
    """Costs 1 + x² below 15, 30 between 15 and 20, and 10⁹ e^{−x/10} beyond, which falls on and on; counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, coordinates):
        self.calls += 1
        x = coordinates[:, 0]
        beyond = 1e9 * np.exp(-x / 10)
        costs = np.select([x < 15, x < 20], [1 + x**2, 30.0], beyond)
        slopes = np.select([x < 15, x < 20], [x, 0.0], -beyond / 10)
        return costs[:, None], slopes[:, None], np.ones((len(x), 1, 1))


def test_starts_that_fall_without_coming_near_the_best_are_not_waited_for():
    costs = _Landscape()
    found = minimize(costs, np.array([[0.0], [30.0]]), 0.01)
    assert (found.cost, found.point.tolist()) == (1.0, [0.0])
    assert costs.calls == 1 + 12


def test_a_single_start_goes_on_as_long_as_it_falls():
    costs = _Landscape()
    found = minimize(costs, np.array([[30.0]]), 0.01)
    assert costs.calls == 1 + 40 and found.cost < 1e9 * np.exp(-3)


def test_a_start_that_is_behind_at_first_may_win():
    """From 14 it takes five steps, of two each, to fall below 30."""
    found = minimize(_Landscape(), np.array([[16.0], [14.0]]), 0.01)
    assert found.cost < 1.001
