"""The objective as a function of the weights that are not masked: its gradient, its Hessian and its natural size.

Everything is in the real coordinates of `real_vector`; masked coordinates keep their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import map_rows, over_rows, require_x64
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import FewShot, NextToken

from .._integrate import masked_gradient
from .._parameters import Mask, mask_vector, real_vector

_DOUBLINGS = np.arange(-60.0, 61.0)


class Expansion(NamedTuple):
    """The loss around a point: L, ∇L of shape (n,), ∇²L of shape (n, n)."""

    loss: Array
    gradient: Array
    hessian: Array


class Landscape(eqx.Module):
    """L in real coordinates.

    Attributes:
        objective: L.
        model: gives the structure, and the values of masked coordinates.
        allowed: 1 where a coordinate may move, 0 where it is masked, shape (n,).
    """

    objective: Objective
    model: eqx.Module
    allowed: Array

    @property
    def rebuild(self) -> Callable[[Any], Any]:
        """From real vectors to models."""
        return real_vector(self.model)[1]

    @property
    def start(self) -> np.ndarray:
        """The weights of the model in double precision, shape (n,)."""
        return np.asarray(real_vector(self.model)[0], float)

    def loss(self, vector: Array) -> Array:
        """L at θ."""
        return self.objective(self.rebuild(vector)).value

    def gradient(self, vector: Array) -> Array:
        """∇L at θ, 0 where masked."""
        return masked_gradient(self.objective, self.rebuild, self.allowed)(vector)

    def expansion(self, vector: Array) -> Expansion:
        """L at θ, and ∇L and ∇²L, which are 0 where masked. One evaluation gives all three."""

        def slope(v: Array) -> tuple[Array, tuple[Array, Array]]:
            value, gradient = jax.value_and_grad(self.loss)(v)
            gradient = gradient * self.allowed
            return gradient, (value, gradient)

        hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(vector)
        hessian = hessian * self.allowed
        return Expansion(value, gradient, (hessian + hessian.T) / 2)

    def placed(self, vectors: Array) -> Array:
        """The vectors, with the model's own values where masked."""
        return jnp.where(self.allowed == 1, vectors, jnp.asarray(real_vector(self.model)[0]))


def landscape_of(
    what: str,
    model: eqx.Module,
    process: Any,
    task: NextToken | FewShot,
    engine: Engine | None,
    mask: Mask | None,
) -> Landscape:
    """The landscape that a function works on.

    Raises:
        ValueError: when 64-bit mode is off: curvatures in single precision say nothing; as `mask_vector`.
        TypeError: as `objective_of` and `mask_vector`.
    """
    require_x64(what)
    return Landscape(objective_of(model, process, task, engine), model, mask_vector(model, mask))


def gradients(landscape: Landscape, vectors: np.ndarray) -> np.ndarray:
    """∇L at many points, (k, n) → (k, n)."""
    found: np.ndarray = over_rows(lambda rows: _gradients(landscape, rows), vectors)
    return found


@eqx.filter_jit
def _gradients(landscape: Landscape, vectors: Any) -> Array:
    found: Array = map_rows(landscape.gradient, vectors)
    return found


@eqx.filter_jit
def expand(landscape: Landscape, vector: Any) -> Expansion:
    """L, ∇L and ∇²L at one point."""
    return landscape.expansion(vector)


@eqx.filter_jit
def zero_loss(landscape: Landscape) -> Array:
    """L of the model that predicts 0: the unit in which losses are small or large."""
    return landscape.loss(jnp.zeros_like(landscape.allowed))


def natural_size(landscape: Landscape, seed: int = 0) -> float:
    """The size of weights that matter: along a random direction, where the loss first changes by half of itself.

    1 where it never does (within 2^±60).
    """
    direction = np.random.default_rng(seed).normal(size=landscape.start.shape)
    along = np.asarray(_along(landscape, jnp.asarray(direction), jnp.asarray(2.0**_DOUBLINGS)))
    unit = float(zero_loss(landscape)) or 1.0
    with np.errstate(invalid="ignore"):
        matters = ~(np.abs(along - along[0]) <= 0.5 * abs(unit))
    return float(2.0 ** _DOUBLINGS[np.argmax(matters)]) if matters.any() else 1.0


@eqx.filter_jit
def _along(landscape: Landscape, direction: Array, sizes: Array) -> Array:
    return jax.lax.map(lambda s: landscape.loss(landscape.placed(s * direction)), sizes)


def real_vectors(models: Any) -> np.ndarray:
    """Weights stacked along their first axis as real vectors, shape (k, n)."""
    return np.asarray(jax.vmap(lambda one: real_vector(one)[0])(eqx.filter(models, eqx.is_inexact_array)))
