"""Checks of arrays whose errors are one line: real numbers, square and symmetric positive definite matrices."""

from typing import Any

import numpy as np

from ..specs import show

_SYMMETRY = 1e-12  # relative: a product such as Q Λ Qᵀ is symmetric up to rounding only


def finite_reals(name: str, value: Any) -> np.ndarray:
    """Return finite real numbers as an array of float64.

    Args:
        name: the name of the array for the user; error messages begin with it.
        value: the array.

    Raises:
        TypeError: `value` is not an array of real numbers.
        ValueError: an entry is not finite.
    """
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise TypeError(f"{name} must be an array of real numbers, got {show(value)}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but has an entry that is infinite or nan")
    return array.astype(float)


def square_matrix(name: str, value: Any) -> np.ndarray:
    """Return a square matrix of finite real numbers, shape (d, d), d ≥ 1.

    Raises:
        TypeError: `value` is not an array of real numbers.
        ValueError: an entry is not finite, or the array is not a square matrix.
    """
    matrix = finite_reals(name, value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    return matrix


def covariance_matrix(name: str, value: Any) -> np.ndarray:
    """Return a symmetric positive definite matrix, made exactly symmetric.

    Raises:
        TypeError: `value` is not an array of real numbers.
        ValueError: an entry is not finite, or the matrix is not square, not symmetric or not positive definite.
    """
    given = square_matrix(name, value)
    half = given / 2.0  # differences and sums of the largest numbers leave double precision
    if abs(half - half.T).max() > _SYMMETRY * abs(half).max():
        raise ValueError(f"{name} must be symmetric; write (S + S.T) / 2 if it is meant to be")
    matrix: np.ndarray = half + half.T
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] <= len(matrix) * np.finfo(float).eps * eigenvalues[-1]:
        raise ValueError(
            f"{name} must be positive definite, but its smallest eigenvalue is {eigenvalues[0]:.3g}; "
            "add a small multiple of the identity"
        )
    return matrix
