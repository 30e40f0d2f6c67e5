"""Ridge regression that knows the noise, that tunes one penalty for all prompts, and that estimates the noise of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._minimized import bracketed

Penalties = Callable[["Examples"], np.ndarray]


class Examples(NamedTuple):
    """Prompts with known noise, in the eigenvectors of their Gram matrices.

    Attributes:
        values: eigenvalues of Σ_i x_i x_iᵀ, shape (prompts, d).
        cross: Σ_i y_i x_i in the eigenvectors, shape (prompts, d).
        query: the query in the eigenvectors, shape (prompts, d).
        sizes: Σ_i y_i², shape (prompts,).
        noise: σ² of every prompt, shape (prompts,).
        examples: N.
    """

    values: np.ndarray
    cross: np.ndarray
    query: np.ndarray
    sizes: np.ndarray
    noise: np.ndarray
    examples: int

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, noise: np.ndarray) -> Examples:
        """From inputs (prompts, N + 1, d), labels (prompts, N) and σ² (prompts,)."""
        inputs = x[:, :-1]
        values, vectors = np.linalg.eigh(np.swapaxes(inputs, 1, 2) @ inputs)
        cross = np.einsum("bn,bnd,bdk->bk", y, inputs, vectors, optimize=True)
        query = np.einsum("bd,bdk->bk", x[:, -1], vectors)
        return cls(values, cross, query, (y**2).sum(1), noise, y.shape[1])

    def answers(self, penalties: np.ndarray) -> np.ndarray:
        """Ridge regression with a penalty per prompt: shape (prompts,)."""
        return (self.query * self.cross / (self.values + penalties[:, None])).sum(1)

    def excess(self, answers: np.ndarray) -> np.ndarray:
        """½(ŷ − oracle)² of every prompt, whose mean is the loss above the oracle's.

        The oracle is the mean of the query's label given prompt and noise, so that it is orthogonal to whatever else is
        predicted from the prompt.
        """
        return (answers - self.answers(self.noise)) ** 2 / 2


def constant(tuning: Examples) -> Penalties:
    """One penalty for all prompts, the best on prompts of its own."""
    best = bracketed(
        lambda penalty: _mean_excess(tuning, np.full(len(tuning.noise), penalty)),
        np.linspace(0, float(tuning.noise.max()), 21),
    )
    return lambda prompts: np.full(len(prompts.noise), best.point[0])


def adaptive(prompts: Examples) -> np.ndarray:
    """The unbiased estimate of σ² from the residuals of least squares; needs N > d."""
    left = prompts.sizes - (prompts.cross**2 / prompts.values).sum(1)
    return np.maximum(left, 0) / (prompts.examples - prompts.values.shape[1])


def tuned(tuning: Examples) -> Penalties:
    """The estimate times a factor, at most a threshold: both the best on prompts of their own."""
    estimate, largest = adaptive(tuning), float(tuning.noise.max())
    factor, most = bracketed(
        lambda factor, most: _mean_excess(tuning, np.minimum(estimate * factor, most)),
        np.geomspace(0.5, 16.0, 16),
        largest * np.linspace(0.2, 1.4, 13),
    ).point
    return lambda prompts: np.minimum(adaptive(prompts) * factor, most)


def _mean_excess(tuning: Examples, penalties: np.ndarray) -> float:
    return float(tuning.excess(tuning.answers(penalties)).mean())
