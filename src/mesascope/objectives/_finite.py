"""Losses that are sums over finitely many samples, for any model: a training set, and all sequences of few symbols."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, require_x64
from mesascope.processes import FewShot, NextToken, SymbolProcess, TrainingSet

from ._engine import Objective
from ._sample_losses import check_model_reads, sample_losses

_BATCH = 500  # samples in memory at the same time
MAX_SEQUENCES = 2**20


class FiniteObjective(Objective):
    r"""The mean $\sum_i p_i L_i$ over samples with probabilities $p_i$.

    Attributes:
        process: what the samples are from.
        task: the weights of predictions.
        samples: in batches of equal size b, arrays of shape (batches, b, …): prompts, or sequences of symbols; the first sample
            fills up the last batch.
        probabilities: of the samples up to a factor, 0 for those that fill up; shape (batches, b).
    """

    process: TrainingSet | SymbolProcess = eqx.field(static=True)
    task: FewShot | NextToken = eqx.field(static=True)
    samples: Any
    probabilities: Array

    def __call__(self, model: Any) -> Estimate:
        """Return the loss, differentiable, with standard error 0."""
        require_x64("Enumeration")
        check_model_reads(model, self.process)
        value = _mean_loss(model, self.task, self.samples, self.probabilities)
        return Estimate(value, jnp.zeros_like(value))


@lru_cache(maxsize=2)  # of at most 2 GiB each
def objective_on_a_set(process: TrainingSet, task: FewShot) -> FiniteObjective:
    """Return the objective of a training set."""
    return _in_batches(process, task, lambda: process.table(task.examples), np.ones(process.prompts))


@lru_cache(maxsize=2)
def objective_on_all_sequences(process: SymbolProcess, task: NextToken) -> FiniteObjective:
    """Return the objective of a process of symbols: the sum over all $S^T$ sequences with their exact probabilities.

    Raises:
        TypeError: the process does not know the probability of a sequence.
        ValueError: there are more than 2²⁰ sequences.
    """
    symbols, horizon = process.vocabulary, task.horizon
    if horizon * np.log2(symbols) > np.log2(MAX_SEQUENCES):
        raise ValueError(
            f"Enumeration: {symbols} symbols have {symbols}^{horizon} sequences of horizon {horizon}, more than 2^20; use "
            "MonteCarlo, or a smaller horizon"
        )
    sequences = np.stack(np.unravel_index(np.arange(symbols**horizon), (symbols,) * horizon), -1).astype(
        np.int32
    )
    probabilities = process.probabilities_of(sequences)
    if probabilities is None:
        raise TypeError(
            f"Enumeration: {type(process).__name__} does not tell the probability of a sequence; define probabilities_of, or "
            "use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    return _in_batches(process, task, lambda: sequences, probabilities)


def _in_batches(
    process: Any, task: Any, draw: Callable[[], Any], probabilities: np.ndarray
) -> FiniteObjective:
    with jax.ensure_compile_time_eval():
        table, count = draw(), len(probabilities)
        size = min(_BATCH, count)
        batches = -(-count // size)
        place = np.arange(batches * size).reshape(batches, size)
        inside = place < count
        chosen = np.where(inside, place, 0)
        samples = jax.tree.map(lambda array: jnp.asarray(np.asarray(array)[chosen]), table)
        return FiniteObjective(
            process, task, samples, jnp.asarray(np.where(inside, probabilities[chosen], 0.0))
        )


@eqx.filter_jit
def _mean_loss(model: Any, task: Any, samples: Any, probabilities: Array) -> Array:
    @jax.checkpoint
    def total(batch: tuple[Any, Array]) -> Array:
        some, weights = batch
        return weights @ sample_losses(model, some, task)

    return jnp.sum(jax.lax.map(total, (samples, probabilities))) / jnp.sum(probabilities)
