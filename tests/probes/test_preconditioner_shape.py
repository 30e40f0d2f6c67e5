"""The forms of matrices of preconditioned steps."""

import numpy as np
import pytest

from mesascope.probes._preconditioner_shape import preconditioner_shape, shape_in_words

EYE, ONES = np.eye(3), np.ones((3, 3))
SIGNS = np.diag([1.0, -1.0, 1.0])
FULL = np.random.default_rng(0).normal(size=(3, 3))


@pytest.mark.parametrize(
    ("right", "left", "name"),
    [
        (0.2 * EYE, None, "plain"),
        (0.2 * EYE, -0.5 * EYE, "plain"),
        (0.2 * np.ones(3), None, "plain"),
        (0.2 * SIGNS, SIGNS, "signed"),
        (0.2 * -SIGNS, -SIGNS, "signed"),
        (0.2 * SIGNS, None, "diagonal"),
        (np.arange(1.0, 4), np.ones(3), "diagonal"),
        (0.2 * EYE - 0.05 * ONES, None, "exchangeable"),
        (0.2 * EYE, EYE + 0.1 * ONES, "exchangeable"),
        (FULL, None, "full"),
        (EYE, FULL, "full"),
        (EYE, np.eye(2), "diagonal"),
        (FULL, np.eye(2), "full"),
    ],
)
def test_shapes(right, left, name):
    assert preconditioner_shape(right, left).name == name


def test_a_shape_holds_up_to_one_percent():
    rest = np.zeros((3, 3))
    rest[0, 1] = np.sqrt(3)
    assert preconditioner_shape(EYE + 0.009 * rest).name == "plain"
    assert preconditioner_shape(EYE + 0.011 * rest).name != "plain"


def test_descriptions_of_shapes():
    assert "gradient descent with step size 0.1" in shape_in_words(0.2 * EYE, 0.5 * EYE)
    told = shape_in_words(-0.2 * SIGNS, -SIGNS)
    assert "up to signs + − + of the coordinates" in told and "step size 0.2" in told
    told = shape_in_words(0.2 * EYE - 0.05 * ONES, EYE + 0.25 * ONES)
    assert told.endswith("R = 0.2 I − 0.05 11ᵀ, L = 1 I + 0.25 11ᵀ")
    assert shape_in_words(FULL) == ""
