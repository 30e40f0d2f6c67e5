"""Losses and gradients of many models in one call."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.core import map_rows, over_rows

from ._engine import Objective


def losses(objective: Objective, models: eqx.Module) -> np.ndarray:
    """Return L of models stacked along the first axis of their weights, shape (n,).

    Not under transformations of JAX: the losses are an array of NumPy.

    Raises:
        ValueError: weights without a first axis of one length.
    """
    found: np.ndarray = over_rows(lambda rows: _losses(objective, rows), models)
    return found


def losses_and_gradients(objective: Objective, models: eqx.Module) -> tuple[np.ndarray, eqx.Module]:
    """Return L and ∇L of models stacked along the first axis of their weights.

    Vectorized in batches: on CPUs the intermediate arrays of a batch of at most 16 fit into the cache, several times faster
    than one batch of a thousand. Not under transformations of JAX: what is returned are arrays of NumPy.

    Args:
        objective: an objective of any engine.
        models: a model whose weights have a leading axis of length n.

    Returns:
        Losses (n,) and the gradients, stacked like the models. As with `jax.grad`, the gradient in a complex
        weight is the conjugate of the direction of ascent.

    Raises:
        ValueError: weights without a first axis of one length.
    """
    found: tuple[np.ndarray, eqx.Module] = over_rows(
        lambda rows: _losses_and_gradients(objective, rows), models
    )
    return found


@eqx.filter_jit
def _losses(objective: Objective, models: eqx.Module) -> Array:
    weights, rest = eqx.partition(models, eqx.is_inexact_array)
    found: Array = map_rows(lambda one: objective(eqx.combine(one, rest)).value, weights)
    return found


@eqx.filter_jit
def _losses_and_gradients(objective: Objective, models: eqx.Module) -> tuple[Array, eqx.Module]:
    weights, rest = eqx.partition(models, eqx.is_inexact_array)

    def one(single: eqx.Module) -> tuple[Array, eqx.Module]:
        return jax.value_and_grad(lambda w: objective(eqx.combine(w, rest)).value)(single)

    found: tuple[Array, eqx.Module] = map_rows(one, weights)
    return found
