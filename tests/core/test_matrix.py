"""Arrays of real numbers and covariance matrices: converted, or refused."""

import numpy as np
import pytest

from mesascope.core import covariance_matrix, finite_reals


def test_numbers_become_double_precision():
    read = finite_reals("x", [[1, 2], [3, 4]])
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, [[1, 2], [3, 4]])
    assert finite_reals("x", np.float32(0.5)) == 0.5


def test_products_symmetric_up_to_rounding_are_made_symmetric():
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))
    product = (turn * np.arange(1.0, 8.0)) @ turn.T
    assert (product != product.T).any()
    read = covariance_matrix("S", product)
    np.testing.assert_array_equal(read, read.T)
    np.testing.assert_allclose(read, product, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([[1, 2], [3]], TypeError, "S must be an array of real numbers, got"),
        ([[1j]], TypeError, "S must be an array of real numbers"),
        ([["1"]], TypeError, "S must be an array of real numbers"),
        ([[np.nan]], ValueError, "S must be finite"),
        ([1, 2], ValueError, r"S must be a square matrix, got shape \(2,\)"),
        (np.ones((2, 3)), ValueError, r"S must be a square matrix, got shape \(2, 3\)"),
        (np.ones((0, 0)), ValueError, "S must be a square matrix"),
        ([[1, 1], [0, 1]], ValueError, r"S must be symmetric; write \(S \+ S.T\) / 2"),
        (
            [[1, 1], [1, 1]],
            ValueError,
            "S must be positive definite, .*; add a small multiple of the identity",
        ),
        ([[1, 2], [2, 1]], ValueError, "S must be positive definite, but its smallest eigenvalue is -1"),
        ([[1, 0], [0, 1.5e308]], ValueError, "S must be positive definite"),  # sums of such entries overflow
        ([[1, 1.5e308], [-1.5e308, 1]], ValueError, "S must be symmetric"),
    ],
)
def test_invalid_covariances_are_refused(value, error, message):
    with pytest.raises(error, match=message):
        covariance_matrix("S", value)
