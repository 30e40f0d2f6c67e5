"""The looped layer as a model, and the layer that is best on drawn prompts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import (
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    PromptModel,
    StackedPrompt,
)
from mesascope.processes import LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Settings
from .._minimized import minimized
from .._rotations import rotation

PAPER = "gatmiry2024"


def layer_stack(preconditioner: Any, direction: Any = None) -> LinearAttentionStack:
    """The layer with A and u: a sum over the N examples, ρ = N, residual connection."""
    layer = LinearSelfAttention(*theory.looped_layer(preconditioner, direction), "t-1", "examples")
    return LinearAttentionStack([layer])


def looped_model(preconditioner: Any, direction: Any, loops: int) -> PromptModel:
    """The layer `loops` times, behind the stacked prompt."""
    stack = layer_stack(preconditioner, direction)
    return PromptModel(StackedPrompt(stack.width - 1), Looped(stack, loops), LastEntry(-1))


def root_of_covariance(settings: Settings) -> np.ndarray:
    """Σ^{1/2} of a rotated Σ with eigenvalues from 0.4 to 2."""
    dim = settings["dim"]
    axes = rotation(np.random.default_rng([settings["seed"], dim]), dim)
    return np.asarray((axes * np.geomspace(0.4, 2.0, dim) ** 0.5) @ axes.T)


def regression(settings: Settings) -> LinearRegression:
    """Inputs x ~ N(0, Σ), w ~ N(0, Σ⁻¹), no noise."""
    root = root_of_covariance(settings)
    sigma = root @ root
    return LinearRegression(settings["dim"], covariance=(sigma + sigma.T) / 2, prior="inverse")


def drawn_moments(settings: Settings, examples: int, prompts: int, name: str) -> np.ndarray:
    """Ŝ = Σ^{-1/2} S Σ^{-1/2} of drawn prompts, shape (prompts, d, d)."""
    key = named_key(settings["seed"], "moments", name, str(examples))
    x = np.asarray(regression(settings).sample(key, examples, prompts).x, float)[:, :-1]
    white = x @ np.linalg.inv(root_of_covariance(settings))
    return np.asarray(np.einsum("bni,bnj->bij", white, white) / examples)


def minimizer(moments: np.ndarray, loops: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """M = Σ^{1/2}AΣ^{1/2} and v = Σ^{1/2}u of the least loss on drawn prompts, from a random start.

    The mean over x_q and w is exact; the logarithm of the loss makes the stopping rule one of relative change.

    Raises:
        UnsettledError: BFGS stops where the gradient is not small.
    """
    return _minimizer(moments, loops, seed, _as_it_is)


def symmetric_minimizer(moments: np.ndarray, loops: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`minimizer` among symmetric M."""
    return _minimizer(moments, loops, seed, _symmetric_part)


def _as_it_is(m: Any) -> Any:
    return m


def _symmetric_part(m: Any) -> Any:
    return (m + m.T) / 2


def _minimizer(
    moments: np.ndarray, loops: int, seed: int, part: Callable[[Any], Any]
) -> tuple[np.ndarray, np.ndarray]:
    dim = moments.shape[1]
    rng = np.random.default_rng([seed, loops, dim])
    start = np.concatenate([0.1 * rng.normal(size=dim * dim), 0.3 * rng.normal(size=dim)])

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loss, slope = _log_loss(flat, moments, loops, part)
        return float(loss), np.asarray(slope)

    found = minimized(value, start, 1e-4, gtol=1e-6, maxiter=1000).point
    return np.asarray(part(found[: dim * dim].reshape(dim, dim))), found[dim * dim :]


@partial(jax.jit, static_argnums=(2, 3))
def _log_loss(flat: Array, moments: Array, loops: int, part: Callable[[Any], Any]) -> Any:
    dim = moments.shape[1]
    identity = jnp.eye(dim)

    def loss(flat: Array) -> Array:
        m, v = part(flat[: dim * dim].reshape(dim, dim)), flat[dim * dim :]
        left = jnp.linalg.matrix_power(identity - m @ moments, loops)
        return jnp.log(jnp.mean(jnp.sum(left**2, (1, 2)) + jnp.sum(((left - identity) @ v) ** 2, 1)))

    return jax.value_and_grad(loss)(flat)
