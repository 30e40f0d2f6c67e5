"""The looped layer as a model, its exact loss at u = 0, and its best weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import LinearAttentionStack, Looped, PreconditionedLinearAttention, PromptModel
from mesascope.objectives import ExactMoments
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Settings
from .._minimized import Best, Minimum, best_of, minimized
from .._prompts import construction_stack, prompt_model
from .._rotations import rotated

PAPER = "gatmiry2024"


def looped_model(preconditioner: Any, direction: Any, loops: int) -> PromptModel:
    """The layer with A and u, `loops` times."""
    stack = construction_stack(theory.looped_layer(preconditioner, direction))
    return prompt_model(Looped(stack, loops))


class Inputs(Settings):
    """The dimension of inputs, and the seed of the axes of Σ."""

    dim: int = 5
    seed: int = 0


def root_of_covariance(settings: Inputs) -> np.ndarray:
    """Σ^{1/2} of a rotated Σ with eigenvalues from 0.4 to 2."""
    dim = settings.dim
    return rotated(np.geomspace(0.4, 2.0, dim) ** 0.5, np.random.default_rng([settings.seed, dim]))


def regression(settings: Inputs) -> LinearRegression:
    """Inputs x ~ N(0, Σ), w ~ N(0, Σ⁻¹), no noise."""
    root = root_of_covariance(settings)
    sigma = root @ root
    return LinearRegression(settings.dim, covariance=(sigma + sigma.T) / 2, prior="inverse")


@lru_cache(maxsize=32)
def exact_loss(dim: int, examples: int, loops: int) -> Callable[[Any], tuple[Array, Array]]:
    """E(ŷ − y)² of up to three loops at u = 0, exactly, and its gradient: functions of M = Σ^{1/2}AΣ^{1/2} for every Σ."""
    objective = ExactMoments().objective(LinearRegression(dim), FewShot(examples))

    def loss(m: Array) -> Array:
        stack = LinearAttentionStack([PreconditionedLinearAttention(m)])
        return 2 * objective(prompt_model(Looped(stack, loops))).value

    return jax.jit(jax.value_and_grad(loss))


def minimizer(
    dim: int, examples: int, loops: int, starts: int, seed: int, *, symmetric: bool = False
) -> Best:
    """The M of the least exact loss at u = 0, from random starts; `points` hold the d² entries of M.

    Minimizers are rotations of each other, so that losses are compared: those within a millionth count as the same.

    Args:
        dim: d.
        examples: n.
        loops: L, at most 3.
        starts: number of searches.
        seed: of the starts.
        symmetric: whether the search is among symmetric M.

    Raises:
        UnsettledError: fewer than three searches reach the least loss.
    """
    return best_of(
        lambda number: search(dim, examples, loops, [seed, loops, dim, number], symmetric),
        range(starts),
        _NEARNESS,
    )


_NEARNESS = 1e-6  # BFGS stops at slopes of 1e-6, the rounding of losses of 1e-5 leaves 1e-8


def search(dim: int, examples: int, loops: int, seed: list[int], symmetric: bool) -> Minimum:
    """One descent by BFGS from a random start; the logarithm of the loss makes the stopping rule one of relative change.

    Raises:
        UnsettledError: BFGS stops where the gradient is not small.
    """
    loss = exact_loss(dim, examples, loops)

    def value(flat: np.ndarray) -> tuple[Any, np.ndarray]:
        found, slope = loss(jnp.asarray(_part(flat.reshape(dim, dim), symmetric)))
        return np.log(found), _part(np.asarray(slope), symmetric).ravel() / float(found)

    start = 0.1 * np.random.default_rng(seed).normal(size=dim * dim)
    end = minimized(value, start, 1e-4, gtol=1e-6, maxiter=1000)
    return Minimum(_part(end.point.reshape(dim, dim), symmetric).ravel(), float(np.exp(end.value)))


def _part(m: np.ndarray, symmetric: bool) -> np.ndarray:
    return (m + m.T) / 2 if symmetric else m
