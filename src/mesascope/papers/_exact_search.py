"""The best weights of a layer under its exact population loss, searched from many starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mesascope.models import PromptModel
from mesascope.objectives import objective_of

from ._minimized import Best, Minimum, best_of, minimized


class BestLayer(NamedTuple):
    """The best of many searches, the model there, and the models of all searches that reached the best value."""

    model: PromptModel
    best: Best
    models: tuple[PromptModel, ...]


def best_layer(
    starts: Iterable[PromptModel], process: Any, task: Any, nearness: float, largest_slope: float
) -> BestLayer:
    """Descend quasi-Newton from every start, on the exact loss of all weights.

    Args:
        starts: models that differ in their weights only.
        process: what `ExactMoments` treats.
        task: as for `population_loss`.
        nearness: as for `best_of`.
        largest_slope: as for `minimized`.

    Raises:
        UnsettledError: fewer than three starts reach the best value.
    """
    given = list(starts)
    objective = objective_of(given[0], process, task, None)

    def search(start: PromptModel) -> Minimum:
        vector = np.asarray(ravel_pytree(eqx.filter(start, eqx.is_inexact_array))[0])
        return minimized(
            lambda point: _loss_and_slope(point, start, objective),
            vector,
            largest_slope,
            gtol=largest_slope / 100,
            maxiter=5000,
        )

    best = best_of(search, given, nearness)
    found = tuple(_with_weights(given[0], jnp.asarray(point)) for point in best.points)
    return BestLayer(found[0], best, found)


@eqx.filter_jit
def _loss_and_slope(vector: Any, like: PromptModel, objective: Any) -> tuple[Any, Any]:
    """Compiled once for processes that differ in their numbers only."""
    return jax.value_and_grad(lambda point: objective(_with_weights(like, point)).value)(vector)


def _with_weights(model: PromptModel, vector: Any) -> PromptModel:
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    found: PromptModel = eqx.combine(ravel_pytree(weights)[1](vector), rest)
    return found
