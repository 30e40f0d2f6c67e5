"""How far every task moves a minimum: the jackknife, and directions that tasks do not determine."""

import numpy as np

from mesascope.probes._mixture_fit import moves


def test_they_are_the_differences_of_the_minima_without_each_task():
    """Squared distances (x_i·θ − y_i)²: the cost is quadratic, so that one step of Newton's is exact."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    whole = np.linalg.lstsq(x, y)[0]
    others = np.array([np.linalg.lstsq(np.delete(x, i, 0), np.delete(y, i))[0] for i in range(8)])
    found = moves(2 * (x @ whole - y)[:, None] * x, 2 * x[:, :, None] * x[:, None, :])
    np.testing.assert_allclose(found, 8 * (whole - others), rtol=1e-10)


def test_a_coordinate_that_changes_nothing_spoils_no_other():
    """As a penalty near 0, whose curvature is rounding: of either sign, or 0."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    scores, hessians = y[:, None] * x, x[:, :, None] * x[:, None, :]
    expected = moves(scores, hessians)
    for curvature in (1e-12, 0.0, -1e-12):
        more = np.zeros((50, 3, 3))
        more[:, :2, :2], more[:, 2, 2] = hessians, curvature
        more[:, 2, 0] = more[:, 0, 2] = 1e-9
        found = moves(np.pad(scores, [(0, 0), (0, 1)]), more)
        np.testing.assert_allclose(found[:, :2], expected, rtol=1e-12)
        assert np.isinf(found[:, 2]).all()


def test_what_one_task_alone_determines_is_not_determined():
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = moves(np.ones((3, 1)) * x, x[:, :, None] * x[:, None, :])
    assert np.isfinite(found[:2]).all()
    assert np.isinf(found[2]).all()
