"""Covariance matrices as checked, hashable parameters, and their powers."""

import numpy as np

from ..core import covariance_matrix
from ..specs import Matrix


def checked_covariance(given: Matrix, dim: int) -> Matrix:
    """Return the rows of a symmetric positive definite matrix, made exactly symmetric.

    Raises:
        ValueError: the shape is not `(dim, dim)`, or the matrix is not symmetric or not positive definite.
    """
    shape = (len(given), len(given[0]))
    if shape != (dim, dim):
        raise ValueError(f"must have shape ({dim}, {dim}) for dim = {dim}, got {shape}")
    return tuple(tuple(row) for row in covariance_matrix("", given).tolist())


def matrix_power(matrix: Matrix, exponent: float) -> np.ndarray:
    """Return the symmetric power Sᵖ of a symmetric positive definite matrix, e.g. p = ½ or −½."""
    eigenvalues, vectors = np.linalg.eigh(np.array(matrix))
    return (vectors * eigenvalues**exponent) @ vectors.T
