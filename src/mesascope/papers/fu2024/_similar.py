"""Newton's iterations and gradient steps as the authors' program takes them, and the similarity of their errors."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.learners import Ends, SpectralLearner, features_of, prompt_examples
from mesascope.processes import LinearRegression

from .._claim import Settings
from .._shared import shared


def in_eigenvectors(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of prompts (x (B, N + 1, d), y (B, N + 1)): eigenvalues and -vectors of XᵀX/N, and Xᵀy/N along these."""
    inputs, labels = np.asarray(x)[:, :-1], np.asarray(y)[:, :-1]
    count = inputs.shape[1]
    values, vectors = np.linalg.eigh(np.swapaxes(inputs, 1, 2) @ inputs / count)
    cross = np.einsum("bdk,bnd,bn->bk", vectors, inputs, labels, optimize=True) / count
    return values, vectors, cross


class SumSteps(SpectralLearner):
    """K steps w ← w − η(XᵀXw − Xᵀy) from 0: on the sum over the n examples, as `models.py:583-588` of the program.

    Args:
        step_size: η.
        steps: K ≥ 0.
    """

    name: ClassVar[str] = "gradient-descent on the sum"

    step_size: Any
    steps: Any

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """(1 − (1 − ηns)^K)/s, with its limit Kηn at s = 0."""
        rate = self.step_size * n
        left = jnp.power(1 - rate * values, self.steps * 1.0)
        return jnp.where(values > 0, (1 - left) / jnp.where(values > 0, values, 1), self.steps * rate)


class FrobeniusNewton(SpectralLearner):
    """K of Newton's iterations from M_0 = S/‖SSᵀ‖_F, as `models.py:514-516` of the program.

    Args:
        steps: K ≥ 0.
    """

    name: ClassVar[str] = "newton from the Frobenius norm"

    steps: Any

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """(1 − (1 − s²/‖s²‖)^(2^K))/s, 0 at s = 0."""
        norm = jnp.sqrt((values**4).sum(-1, keepdims=True))
        share = values**2 / jnp.where(norm > 0, norm, 1)
        left = jnp.power(1 - share, 2.0**self.steps)
        return jnp.where(values > 0, (1 - left) / jnp.where(values > 0, values, 1), 0.0)


newton = FrobeniusNewton
"""The iterations that are compared."""


class Compared(Settings):
    """The prompts on which errors are compared, and the size of a gradient step."""

    dim: int = 20
    examples: int = 40
    step_size: float = 0.01
    batches: int = 5
    prompts: int = 60
    seed: int = 0


class Tried(Compared):
    """The largest numbers of iterations and of gradient steps, and the size of the grid of steps."""

    iterations: int = 18
    most_steps: int = 2000
    grid: int = 60


def tried(settings: Tried) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of iterations and of gradient steps of which errors are compared."""
    grid = np.geomspace(1, settings.most_steps, settings.grid)
    return np.arange(settings.iterations + 1), np.unique(np.round(grid).astype(int))


@shared(Tried)
def tables(settings: Tried) -> np.ndarray:
    """`similarities` of all numbers that are tried, for every batch: shape (batches, iterations, steps)."""
    return np.stack([similarities(settings, str(k), *tried(settings)) for k in range(settings.batches)])


def similarities(settings: Compared, batch: str, iterations: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Mean over prompts of the cosine of the errors after 1 … N examples: shape (iterations, steps)."""
    key = named_key(settings.seed, "gradient steps", batch)
    x, y = LinearRegression(settings.dim).sample(key, settings.examples, settings.prompts)
    features = features_of(FrobeniusNewton, *prompt_examples(x, y))

    def errors(make: Any, counts: np.ndarray) -> np.ndarray:
        one = jax.jit(lambda seen, all: jax.lax.map(lambda k: make(k).respond(seen)[..., 0], all))
        off = np.asarray(one(features, jnp.asarray(counts)) - y)
        off = off[..., 1:]  # without examples all errors are the labels
        off = off / np.abs(off).max(-1, keepdims=True)  # squares overflow where steps diverge
        return off / np.linalg.norm(off, axis=-1, keepdims=True)

    found = errors(newton, iterations)
    descent = errors(lambda k: SumSteps(settings.step_size, k), steps)
    return np.einsum("kbn,gbn->kg", found, descent) / settings.prompts
