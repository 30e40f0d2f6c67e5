"""When a flow is at rest, and how fast it moves: in units of the landscape itself, whatever the scale of the data.

Sizes are largest absolute values, so that nothing is squared: weights and losses may be of any magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Gradient = Callable[[Array], Array]
Rebuild = Callable[[Array], eqx.Module]
_ITERATIONS = 8


def size(values: Array) -> Array:
    """Largest absolute value."""
    return jnp.max(jnp.abs(values))


def curvature(gradient: Gradient, vector: Array) -> Array:
    """Largest |eigenvalue| of the Hessian, to within a factor of order one: the fastest rate of the flow.

    Power iteration with central differences of the gradient, from a fixed random direction.
    """
    direction = jnp.asarray(np.random.default_rng(0).normal(size=vector.shape), vector.dtype)
    width = 1e-4 * jnp.where(size(vector) > 0, size(vector), 1.0)

    def step(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        along, _ = carry
        unit = along / jnp.where(size(along) > 0, size(along), 1.0)
        ahead, behind = jax.lax.map(gradient, jnp.stack([vector + width * unit, vector - width * unit]))
        turned = (ahead - behind) / (2 * width)
        return turned, size(turned)

    return jax.lax.fori_loop(0, _ITERATIONS, step, (direction, jnp.zeros((), vector.dtype)))[1]


def rest_event(gradient: Gradient, rebuild: Rebuild, bound: Array) -> Callable[..., Array]:
    """‖∂L/∂W‖ ≤ bound · ‖W‖ for every weight matrix W, as a condition that diffrax checks after every step.

    Matrix by matrix: where W^KQ is large and W^PV small, the small one has to be at rest in its own units.
    """

    def condition(t: Any, y: Array, args: Any, **kwargs: Any) -> Array:
        slopes, weights = matrix_sizes(rebuild(gradient(y))), matrix_sizes(rebuild(y))
        return jnp.all(slopes <= bound * weights)

    return condition


def matrix_sizes(model: eqx.Module) -> Array:
    """The size of every weight matrix of a model, shape (number of matrices,)."""
    return jnp.stack([size(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))])


def smallest_matrix(model: eqx.Module) -> float:
    """The smallest size of a weight matrix that is not zero, at least 1e-150."""
    sizes = [
        float(np.max(np.abs(np.asarray(leaf))))
        for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    ]
    return max(min((s for s in sizes if s > 0), default=1.0), 1e-150)
