"""The loss of steps on isotropic prompts, from the spectra of their Gram matrices, and the best steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key


def spectra(process: Any, examples: int, prompts: int, seed: int) -> np.ndarray:
    """Eigenvalues of S = (1/N) Σ_i x_i x_iᵀ of drawn prompts, shape (prompts, d)."""
    x = np.asarray(process.sample(named_key(seed, "spectra"), examples, prompts).x)[:, :-1]
    return np.asarray(np.linalg.eigvalsh(np.einsum("bni,bnj->bij", x, x) / examples))


def loss_of_steps(eigenvalues: np.ndarray, step_sizes: Any, curvatures: Any, variance: float) -> float:
    """½E(ŷ − y)² = ½s² E Σ_k r_k², with r_k of `residual`.

    The query and w are independent of the examples, isotropic, with covariances s² I and I.
    """
    return float(variance / 2 * np.mean(np.sum(residual(eigenvalues, step_sizes, curvatures) ** 2, -1)))


def best_polynomial_loss(eigenvalues: np.ndarray, steps: int, variance: float) -> float:
    """The least ½s² E Σ_k p(s_k)² of polynomials p of a degree, `steps`, with p(0) = 1, by least squares.

    It bounds the loss of gradient descent with so many steps of any sizes, with momentum or without: r = p(S) of the weights
    is not learned.
    """
    scaled = eigenvalues / eigenvalues.max()
    powers = scaled[..., None] ** np.arange(1, steps + 1)
    coefficients = np.linalg.lstsq(powers.reshape(-1, steps), -np.ones(scaled.size), rcond=None)[0]
    return float(variance / 2 * np.mean(np.sum((1 + powers @ coefficients) ** 2, -1)))


def residual(eigenvalues: np.ndarray, step_sizes: Any, curvatures: Any) -> np.ndarray:
    """The part r of w that is not learned along eigenvectors of S with these eigenvalues.

    A step of size η moves the labels, and one of curvature γ the inputs: r ← r (1 − η s p²), p ← p (1 − γ s p²), from 1.
    """
    left, scale = np.ones_like(eigenvalues), np.ones_like(eigenvalues)
    for step_size, curvature in zip(step_sizes, curvatures, strict=True):
        grown = eigenvalues * scale**2
        left, scale = left * (1 - step_size * grown), scale * (1 - curvature * grown)
    return left
