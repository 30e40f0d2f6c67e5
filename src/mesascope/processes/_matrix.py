"""Covariance matrices as static parameters: checked, hashable, with their powers."""

from typing import Any, TypeAlias

import numpy as np

from ..core import covariance_matrix, finite_reals

Matrix: TypeAlias = tuple[tuple[float, ...], ...]


def checked_covariance(name: str, value: Any, dim: int) -> Matrix:
    """Return `value` as the rows of a symmetric positive definite matrix of the given dimension.

    Raises:
        TypeError: `value` is no array of real numbers.
        ValueError: a shape other than `(dim, dim)`, an entry that is not finite, or a matrix that is not
            symmetric or not positive definite.
    """
    given = finite_reals(name, value)
    if given.shape != (dim, dim):
        raise ValueError(f"{name} must have shape ({dim}, {dim}) for dim = {dim}, got {given.shape}")
    return tuple(tuple(row) for row in covariance_matrix(name, given).tolist())


def matrix_power(matrix: Matrix, exponent: float) -> np.ndarray:
    """Return the symmetric power Sᵖ of a symmetric positive definite matrix, e.g. p = ½ or −½."""
    eigenvalues, vectors = np.linalg.eigh(np.array(matrix))
    return (vectors * eigenvalues**exponent) @ vectors.T
