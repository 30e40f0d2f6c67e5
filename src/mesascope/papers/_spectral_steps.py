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


def best_polynomial(eigenvalues: np.ndarray, steps: int) -> np.ndarray:
    """The polynomial p of degree at most `steps` with p(0) = 1 and the least E Σ_k p(s_k)²: its coefficients, from degree 0.

    Steps along gradients that are the same for all prompts, with momentum or without, leave p(S) w of the weights w.
    """
    largest = eigenvalues.max()
    powers = (eigenvalues.ravel()[:, None] / largest) ** np.arange(1, steps + 1)
    found = np.linalg.lstsq(powers, -np.ones(len(powers)), rcond=None)[0]
    return np.array([1.0, *(found / largest ** np.arange(1, steps + 1))])


def best_polynomial_loss(eigenvalues: np.ndarray, steps: int, variance: float) -> float:
    """½s² E Σ_k p(s_k)² of the best polynomial: a bound for so many steps along gradients, the same for all prompts."""
    left = np.polynomial.polynomial.polyval(eigenvalues, best_polynomial(eigenvalues, steps))
    return float(variance / 2 * np.mean(np.sum(left**2, -1)))


def residual(eigenvalues: np.ndarray, step_sizes: Any, curvatures: Any) -> np.ndarray:
    """The part r of w that is not learned along eigenvectors of S with these eigenvalues.

    A step of size η moves the labels, and one of curvature γ the inputs: r ← r (1 − η s p²), p ← p (1 − γ s p²), from 1.
    """
    left, scale = np.ones_like(eigenvalues), np.ones_like(eigenvalues)
    for step_size, curvature in zip(step_sizes, curvatures, strict=True):
        grown = eigenvalues * scale**2
        left, scale = left * (1 - step_size * grown), scale * (1 - curvature * grown)
    return left
