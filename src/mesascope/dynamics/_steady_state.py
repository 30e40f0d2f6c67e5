"""When a flow is in a steady state, and how fast it moves: in units of the landscape itself, whatever the scale of the data.

Sizes are largest absolute values, so that nothing is squared: weights and losses may be of any magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._parameters import SMALLEST

Gradient = Callable[[Array], Array]
Rebuild = Callable[[Array], eqx.Module]
_ITERATIONS = 8


class Survey(NamedTuple):
    """The landscape around a point.

    Attributes:
        slope: ∇L, shape (n,).
        rate: the fastest rate of the flow, the largest |eigenvalue| of the Hessian to within a factor of order one.
        steepness: see `steepness`.
        first_step: a step size to begin with, a hundredth of the shortest time.
        smallest_matrix: the smallest size of a weight matrix that is not zero, at least `SMALLEST`.
    """

    slope: Array
    rate: Array
    steepness: Array
    first_step: Array
    smallest_matrix: Array

    def atol(self, rtol: Any) -> Any:
        """The absolute local error allowed per step where none is given: of the smallest matrix, a thousandth of rtol."""
        return 1e-3 * rtol * self.smallest_matrix


def survey(gradient: Gradient, rebuild: Rebuild, vector: Array) -> Survey:
    """Measure the landscape: power iteration with central differences of ∇L, from a fixed random direction."""
    direction = np.random.default_rng(0).normal(size=vector.shape)
    unit = jnp.asarray(direction / np.abs(direction).max(), vector.dtype)
    width = 1e-4 * jnp.where(size(vector) > 0, size(vector), 1.0)

    def step(_: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        unit = carry[0]
        points = jnp.stack([vector, vector + width * unit, vector - width * unit])
        around = jax.lax.map(gradient, points)  # one copy of ∇L to compile
        turned = (around[1] - around[2]) / (2 * width)
        rate = size(turned)
        return turned / jnp.where(rate > 0, rate, 1.0), around[0], rate

    begin = unit, jnp.zeros_like(vector), jnp.zeros((), vector.dtype)
    _, slope, rate = jax.lax.fori_loop(0, _ITERATIONS, step, begin)
    sizes = jax.lax.optimization_barrier(matrix_sizes(rebuild, jnp.stack([slope, vector])))
    slopes, weights = sizes[0], sizes[1]
    smallest = jnp.min(jnp.where(weights > 0, weights, jnp.inf))
    return Survey(
        slope,
        rate,
        _steepness(slopes, weights),
        jnp.where(rate > 0, 0.01 / rate, 1.0),
        jnp.maximum(jnp.where(jnp.isfinite(smallest), smallest, 1.0), SMALLEST),
    )


def steepness(rebuild: Rebuild, slope: Array, vector: Array) -> Array:
    """The largest ‖∂L/∂W‖/‖W‖ of a weight matrix W; a flow is in a steady state where this is small.

    Matrix by matrix: where W^KQ is large and W^PV small, the small one has to be steady in its own units.
    """
    return _steepness(*matrix_sizes(rebuild, jnp.stack([slope, vector])))


def _steepness(slopes: Array, weights: Array) -> Array:
    return jnp.max(jnp.where(slopes == 0, 0.0, slopes / weights))


def matrix_sizes(rebuild: Rebuild, vectors: Array) -> Array:
    """The size of every weight matrix, vectors (k, n) → (k, number of matrices)."""
    leaves = jax.tree.leaves(eqx.filter(rebuild(vectors), eqx.is_inexact_array))
    return jnp.stack([jnp.abs(leaf).reshape(len(vectors), -1).max(1) for leaf in leaves], axis=1)


def size(values: Array) -> Array:
    """Largest absolute value."""
    return jnp.max(jnp.abs(values))
