"""Random axes for covariances."""

from __future__ import annotations

import numpy as np


def rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    """An orthogonal matrix: the orthonormal columns of a Gaussian one."""
    return np.linalg.qr(rng.normal(size=(dim, dim)))[0]
