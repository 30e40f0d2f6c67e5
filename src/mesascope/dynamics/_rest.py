"""When a flow is at rest, and how fast it moves: in units of the landscape itself, whatever the scale of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Gradient = Callable[[Array], Array]
_ITERATIONS = 8


def curvature(gradient: Gradient, vector: Array) -> Array:
    """Largest |eigenvalue| of the Hessian, to within a factor of order one: the fastest rate of the flow.

    Power iteration with central differences of the gradient, from a fixed random direction.
    """
    direction = jnp.asarray(np.random.default_rng(0).normal(size=vector.shape), vector.dtype)
    size = jnp.linalg.norm(vector)
    width = 1e-4 * jnp.where(size > 0, size, 1.0)

    def step(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        along, _ = carry
        unit = along / jnp.maximum(jnp.linalg.norm(along), jnp.finfo(vector.dtype).tiny)
        ahead, behind = jax.lax.map(gradient, jnp.stack([vector + width * unit, vector - width * unit]))
        turned = (ahead - behind) / (2 * width)
        return turned, jnp.linalg.norm(turned)

    return jax.lax.fori_loop(0, _ITERATIONS, step, (direction, jnp.zeros((), vector.dtype)))[1]


def rests(gradient: Gradient, vector: Array, bound: Array) -> Array:
    """‖∇L‖ ≤ bound · ‖θ‖: weights of this size would need 1/bound units of time to change."""
    return jnp.linalg.norm(gradient(vector)) <= bound * jnp.linalg.norm(vector)


def rest_event(gradient: Gradient, bound: Array) -> Callable[..., Array]:
    """The same as a condition that diffrax checks after every step."""

    def condition(t: Any, y: Array, args: Any, **kwargs: Any) -> Array:
        return rests(gradient, y, bound)

    return condition
