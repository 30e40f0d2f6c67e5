r"""Moments of random weights w, as far as the exact loss of one layer of linear attention on regression prompts has them.

Given $\Sigma$ that loss is a quadratic form in $v = (1, w, w^\top \Sigma w)$, so that it depends on the law of $w$ through
$E\,v v^\top$ alone: the mean, the covariance, $E\,w\,(w^\top \Sigma w)$ and $E (w^\top \Sigma w)^2$. Matrices of fractions give
moments of fractions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_PIECE = 2**17  # tasks whose moments are summed at once


def gaussian_moments(prior: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Return $E\,v v^\top$ for $w \sim N(0, P)$.

    $E (w^\top \Sigma w)^2 = (\mathrm{tr}\,\Sigma P)^2 + 2\,\mathrm{tr}\,(\Sigma P)^2$.

    Args:
        prior: $P$, shape (d, d).
        covariance: $\Sigma$, shape (d, d).

    Returns:
        Shape (d + 2, d + 2).
    """
    product = covariance @ prior
    power = np.trace(product)
    return _even_moments(prior, power, power**2 + 2 * np.sum(product * product.T))


def sphere_moments(covariance: np.ndarray) -> np.ndarray:
    r"""Return $E\,v v^\top$ for $w$ uniform on the sphere $\|w\|^2 = d$.

    $E\,w_i w_j w_k w_l$ is that of $N(0, I)$ times $d/(d + 2)$, since $E\|w\|^4$ is $d (d + 2)$ there and $d^2$ here.

    Args:
        covariance: $\Sigma$, shape (d, d).

    Returns:
        Shape (d + 2, d + 2).
    """
    dim = len(covariance)
    power = np.trace(covariance)
    fourth = (power**2 + 2 * np.sum(covariance * covariance.T)) * dim / (dim + 2)
    return _even_moments(np.eye(dim, dtype=covariance.dtype), power, fourth)


def pool_moments(vectors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Return the mean of $v v^\top$ over the vectors of a pool, each with the same probability.

    Args:
        vectors: $w_1 \dots w_K$, shape (K, d).
        covariance: $\Sigma$, shape (d, d).

    Returns:
        Shape (d + 2, d + 2).
    """
    summed = np.zeros((len(covariance) + 2,) * 2)
    for first in range(0, len(vectors), _PIECE):  # so that memory does not grow with the pool
        piece = vectors[first : first + _PIECE]
        powers = np.einsum("ki,ij,kj->k", piece, covariance, piece, optimize=True)
        features = np.column_stack([np.ones(len(piece)), piece, powers])
        summed += features.T @ features
    return summed / len(vectors)


def _even_moments(second: np.ndarray, power: Any, fourth: Any) -> np.ndarray:
    """Return E v vᵀ of a symmetric law of w, from E w wᵀ, E wᵀΣw and E (wᵀΣw)²."""
    dim = len(second)
    moments = np.zeros((dim + 2, dim + 2), second.dtype)
    moments[0, 0] = 1
    moments[1:-1, 1:-1] = second
    moments[0, -1] = moments[-1, 0] = power
    moments[-1, -1] = fourth
    return moments
