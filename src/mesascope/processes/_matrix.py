"""Covariance matrices as static parameters: checked, hashable, with their square roots."""

from typing import Any, TypeAlias

import numpy as np

Matrix: TypeAlias = tuple[tuple[float, ...], ...]

_SYMMETRY = 1e-12  # relative: a product such as Q Λ Qᵀ misses symmetry by its rounding


def covariance_matrix(name: str, value: Any, dim: int) -> Matrix:
    """Return `value` as the rows of a symmetric positive definite matrix of the given dimension.

    Raises:
        TypeError: `value` is no matrix of real numbers.
        ValueError: a shape other than `(dim, dim)`, an entry that is not finite, or a matrix that is not
            symmetric or not positive definite.
    """
    try:
        given = np.array(value)
    except ValueError:  # rows of different lengths
        given = np.array(None)
    if not (np.issubdtype(given.dtype, np.integer) or np.issubdtype(given.dtype, np.floating)):
        raise TypeError(f"{name} must be a {dim} × {dim} matrix of real numbers, got {value!r}")
    if given.shape != (dim, dim):
        raise ValueError(f"{name} must have shape ({dim}, {dim}) for dim = {dim}, got {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{name} must be finite, but has an entry that is infinite or nan")
    matrix = (given + given.T) / 2.0
    if abs(given - given.T).max() > _SYMMETRY * abs(given).max():
        raise ValueError(f"{name} must be symmetric; write (S + S.T) / 2 if it is meant to be")
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] <= dim * np.finfo(float).eps * eigenvalues[-1]:
        raise ValueError(
            f"{name} must be positive definite, but its smallest eigenvalue is {eigenvalues[0]:.3g}; "
            "add a small multiple of the identity"
        )
    return tuple(tuple(row) for row in matrix.tolist())


def matrix_power(matrix: Matrix, exponent: float) -> np.ndarray:
    """Return the symmetric power Sᵖ of a symmetric positive definite matrix, e.g. p = ½ or −½."""
    eigenvalues, vectors = np.linalg.eigh(np.array(matrix))
    return (vectors * eigenvalues**exponent) @ vectors.T
