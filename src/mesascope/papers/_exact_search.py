"""The best weights of a layer under its exact population loss, searched from many starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
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
    weights, rest = eqx.partition(given[0], eqx.is_inexact_array)
    _, rebuilt = ravel_pytree(weights)
    objective = objective_of(given[0], process, task, None)

    def model_of(vector: Any) -> PromptModel:
        found: PromptModel = eqx.combine(rebuilt(jnp.asarray(vector)), rest)
        return found

    def loss(vector: Any) -> tuple[Any, Any]:
        value, slope = _loss_and_slope(model_of(vector), objective)
        return value, ravel_pytree(slope)[0]

    def search(start: PromptModel) -> Minimum:
        vector = np.asarray(ravel_pytree(eqx.filter(start, eqx.is_inexact_array))[0])
        return minimized(loss, vector, largest_slope, gtol=largest_slope / 100, maxiter=5000)

    best = best_of(search, given, nearness)
    found = tuple(map(model_of, best.points))
    return BestLayer(found[0], best, found)


@eqx.filter_jit
@eqx.filter_value_and_grad
def _loss_and_slope(model: PromptModel, objective: Any) -> Any:
    """Compiled once for processes that differ in their numbers only."""
    return objective(model).value
