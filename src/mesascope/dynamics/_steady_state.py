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

from ._parameters import SMALLEST, real_vector

Gradient = Callable[[Array], Array]
Rebuild = Callable[[Array], eqx.Module]
ATOL = 1e-3
"""The absolute local error allowed per step in units of rtol times the smallest weight matrix, where none is given."""
_ITERATIONS = 8
_WIDTH = 1e-4  # relative step of the differences


class Survey(NamedTuple):
    """The landscape around a point.

    Attributes:
        slope: ∇L, shape (n,).
        rate: the fastest rate of the flow, the largest |eigenvalue| of the Hessian to within a factor of order one.
        rates: N_W/‖W‖ for every weight matrix W, N_W the change of ∂L/∂W, to first order, under random changes of all matrices
            by up to their own norms, the largest of eight. It is small for a matrix that acts through small ones.
        steepness: see `steepness`.
        first_step: a step size to begin with, a hundredth of the shortest time.
        smallest_matrix: the smallest size of a weight matrix that is not zero, at least `SMALLEST`.
    """

    slope: Array
    rate: Array
    rates: Array
    steepness: Array
    first_step: Array
    smallest_matrix: Array

    def atol(self, rtol: Any) -> Any:
        """The absolute local error allowed per step where none is given."""
        return ATOL * rtol * self.smallest_matrix


def survey(gradient: Gradient, rebuild: Rebuild, vector: Array) -> Survey:
    """Measure the landscape by central differences of ∇L: power iteration, and random changes of all matrices."""
    random = np.random.default_rng(0).uniform(-1, 1, size=(_ITERATIONS, *vector.shape))
    changes = jnp.asarray(random, vector.dtype) * _own_sizes(rebuild, vector)
    width = _WIDTH * jnp.where(size(vector) > 0, size(vector), 1.0)

    def step(i: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        unit, _, _, moved = carry
        aside = jnp.stack([width * unit, _WIDTH * changes[i]])
        points = jnp.concatenate([vector[None], vector + aside, vector - aside])
        around = jax.lax.map(gradient, points)  # one copy of ∇L to compile
        turned, changed = (around[1] - around[3]) / (2 * width), (around[2] - around[4]) / (2 * _WIDTH)
        rate = size(turned)
        unit = turned / jnp.where(rate > 0, rate, 1.0)
        return unit, around[0], rate, jnp.maximum(moved, matrix_sizes(rebuild, changed[None])[0])

    none = jnp.zeros_like(matrix_sizes(rebuild, vector[None])[0])
    first = jnp.asarray(random[0] / np.abs(random[0]).max(), vector.dtype)
    begin = first, jnp.zeros_like(vector), jnp.zeros((), vector.dtype), none
    _, slope, rate, moved = jax.lax.fori_loop(0, _ITERATIONS, step, begin)
    sizes = jax.lax.optimization_barrier(matrix_sizes(rebuild, jnp.stack([slope, vector])))
    slopes, weights = sizes[0], sizes[1]
    smallest = jnp.min(jnp.where(weights > 0, weights, jnp.inf))
    return Survey(
        slope,
        rate,
        jnp.where(weights > 0, moved / weights, 0.0),
        _steepness(slopes, weights),
        jnp.where(rate > 0, 0.01 / rate, 1.0),
        jnp.maximum(jnp.where(jnp.isfinite(smallest), smallest, 1.0), SMALLEST),
    )


def steepness(rebuild: Rebuild, slope: Array, vector: Array) -> Array:
    """‖∂L/∂W‖/‖W‖ of every weight matrix W, shape (number of matrices,): 0 in a steady state.

    Matrix by matrix: where W^KQ is large and W^PV small, the small one has to be steady in its own units.
    """
    return _steepness(*matrix_sizes(rebuild, jnp.stack([slope, vector])))


def _steepness(slopes: Array, weights: Array) -> Array:
    return jnp.where(slopes == 0, 0.0, slopes / weights)


def _own_sizes(rebuild: Rebuild, vector: Array) -> Array:
    """For every weight the size of its matrix, shape (n,)."""

    def filled(leaf: Array) -> Array:
        return jnp.full_like(leaf, jnp.max(jnp.abs(leaf)) * (1 + 1j if jnp.iscomplexobj(leaf) else 1))

    return real_vector(jax.tree.map(filled, eqx.filter(rebuild(vector), eqx.is_inexact_array)))[0]


def matrix_sizes(rebuild: Rebuild, vectors: Array) -> Array:
    """The size of every weight matrix, vectors (k, n) → (k, number of matrices)."""
    leaves = jax.tree.leaves(eqx.filter(rebuild(vectors), eqx.is_inexact_array))
    return jnp.stack([jnp.abs(leaf).reshape(len(vectors), -1).max(1) for leaf in leaves], axis=1)


def size(values: Array) -> Array:
    """Largest absolute value."""
    return jnp.max(jnp.abs(values))
