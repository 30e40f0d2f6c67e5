"""Matrices with random axes."""

from __future__ import annotations

from typing import Any

import numpy as np


def rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    """An orthogonal matrix: the orthonormal columns of a Gaussian one."""
    return np.linalg.qr(rng.normal(size=(dim, dim)))[0]


def rotated(values: Any, rng: np.random.Generator) -> np.ndarray:
    """U diag(values) Uᵀ with random axes U."""
    axes = rotation(rng, len(values))
    return np.asarray((axes * values) @ axes.T)
