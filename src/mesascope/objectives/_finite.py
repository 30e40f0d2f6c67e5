"""The loss on a training set: the mean over all its prompts, for any model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import Estimate, require_x64
from mesascope.processes import FewShot, Prompts, TrainingSet

from ._engine import Objective
from ._sample_losses import check_model_reads, sample_losses

_BATCH = 500  # prompts in memory at the same time


class FiniteObjective(Objective):
    r"""The mean $\frac1n \sum_i L_i$ over the prompts of a training set.

    Attributes:
        process: the training set.
        task: the weights of predictions.
        prompts: the set in batches of equal size, x of shape (batches, b, N + 1, d), y of (batches, b, N + 1); the first prompt
            fills up the last batch.
        counts: 1 for prompts of the set, 0 for those that fill up, shape (batches, b).
    """

    process: TrainingSet = eqx.field(static=True)
    task: FewShot = eqx.field(static=True)
    prompts: Prompts
    counts: Array

    def __call__(self, model: Any) -> Estimate:
        """Return the loss, differentiable, with standard error 0."""
        require_x64("Enumeration")
        check_model_reads(model, self.process)
        value = _mean_loss(model, self.task, self.prompts, self.counts)
        return Estimate(value, jnp.zeros_like(value))


@lru_cache(maxsize=2)  # of at most 2 GiB each
def finite_objective(process: TrainingSet, task: FewShot) -> FiniteObjective:
    """Return the objective of a training set."""
    with jax.ensure_compile_time_eval():
        table, size = process.table(task.examples), min(_BATCH, process.prompts)
        batches = -(-process.prompts // size)
        place = jnp.arange(batches * size).reshape(batches, size)
        inside = place < process.prompts
        prompts = Prompts(*(jnp.asarray(array)[jnp.where(inside, place, 0)] for array in table))
        return FiniteObjective(process, task, prompts, inside.astype(float))


@eqx.filter_jit
def _mean_loss(model: Any, task: FewShot, prompts: Prompts, counts: Array) -> Array:
    @jax.checkpoint
    def total(batch: tuple[Prompts, Array]) -> Array:
        some, count = batch
        return count @ sample_losses(model, some, task)

    return jnp.sum(jax.lax.map(total, (prompts, counts))) / jnp.sum(counts)
