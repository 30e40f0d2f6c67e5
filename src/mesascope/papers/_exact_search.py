"""The best weights of a layer under its exact population loss, searched from many starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from mesascope.models import PromptModel
from mesascope.objectives import population_loss

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

    def model_of(vector: Any) -> PromptModel:
        found: PromptModel = eqx.combine(rebuilt(vector), rest)
        return found

    loss = jax.jit(jax.value_and_grad(lambda vector: population_loss(model_of(vector), process, task).value))

    def search(start: PromptModel) -> Minimum:
        vector = np.asarray(ravel_pytree(eqx.filter(start, eqx.is_inexact_array))[0])
        return minimized(loss, vector, largest_slope, gtol=largest_slope / 100, maxiter=5000)

    best = best_of(search, given, nearness)
    found = tuple(model_of(jax.numpy.asarray(point)) for point in best.points)
    return BestLayer(found[0], best, found)
