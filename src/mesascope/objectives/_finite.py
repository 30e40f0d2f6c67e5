"""Losses that are sums over finitely many samples, for any model: a training set, and all sequences of few symbols."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, quick_jit, require_x64
from mesascope.models import SequenceModel
from mesascope.processes import FewShot, NextToken, SymbolProcess, TrainingSet

from ._engine import Objective
from ._sample_losses import check_model_reads, sample_losses

_BATCH = 64  # samples in memory at the same time: more were not faster
MAX_SEQUENCES = 2**20
_SUM_TOLERANCE = 1e-9  # of the probabilities of all sequences
_TRIED = 32  # contexts on which a model of one's own is tried


class FiniteObjective(Objective):
    r"""The sum $\sum_i p_i L_i$ over samples with probabilities $p_i$.

    Attributes:
        process: what the samples are from.
        task: the weights of predictions.
        samples: in batches of b, shape (batches, b, …); the first sample fills up the last batch.
        probabilities: p_i, shape (batches, b, …); 0 for those that fill up.
    """

    process: TrainingSet | SymbolProcess = eqx.field(static=True)
    task: FewShot | NextToken = eqx.field(static=True)
    samples: Any
    probabilities: Array

    def __call__(self, model: Any) -> Estimate:
        """Return the loss, differentiable, with standard error 0."""
        require_x64("Enumeration")
        check_model_reads(model, self.process)
        value = _sum(self, model)
        return Estimate(value, jnp.zeros_like(value))

    def of_batch(self, model: Any, samples: Any, probabilities: Array) -> Array:
        """Return the part of the sum that one batch gives."""
        return probabilities @ sample_losses(model, samples, self.task)


class AllContextsObjective(FiniteObjective):
    r"""The cross-entropy as a sum over all contexts c of T − 1 symbols.

    $$\sum_c P(c) \sum_{t=2}^{T-1} w_t \sum_s P(s \mid c_1 \dots c_t) (-\log p_t(s \mid c_1 \dots c_t)),$$

    where p_t is what the model predicts after t symbols: it must not look at later ones (`check`).

    Attributes:
        samples: the contexts, shape (batches, b, T − 1).
        probabilities: $w_t P(c) P(s|c_1 … c_t)$ for t = 2 … T − 1, shape (batches, b, T − 2, S).
    """

    def of_batch(self, model: Any, samples: Array, probabilities: Array) -> Array:
        """Return the part of the sum that one batch gives."""
        logs = jax.nn.log_softmax(model.predictions(samples))
        # what never follows may have probability 0
        return -jnp.sum(probabilities * jnp.where(probabilities > 0, logs, 0))

    def check(self, model: Any) -> None:
        """Refuse a model of one's own whose predictions change with later symbols, or with other sequences of a batch.

        Every symbol of some drawn contexts is changed in turn. The network of a `SequenceModel` declares that it is causal.

        Raises:
            ValueError: a prediction has changed.
        """
        weights = jax.tree.leaves(eqx.filter(model, eqx.is_array))
        if isinstance(model, SequenceModel) or any(isinstance(leaf, jax.core.Tracer) for leaf in weights):
            return
        check_model_reads(model, self.process)
        length, symbols = self.samples.shape[-1], self.probabilities.shape[-1]
        rng = np.random.default_rng(0)
        drawn = rng.integers(symbols, size=(_TRIED, 1, length))
        changed = (drawn + np.eye(length, dtype=int)) % symbols
        beside, rounding = _chances_of(model, np.concatenate([drawn, changed], 1))
        alone, _ = _chances_of(model, np.concatenate([drawn, rng.integers(symbols, size=changed.shape)], 1))
        name = type(model).__name__
        if (np.abs(beside[:, 0] - alone[:, 0]) > rounding).any():
            raise ValueError(
                f"model: what {name} predicts depends on other sequences of the batch; exact sums need one sequence at a time"
            )
        # by the place of the changed symbol and of the prediction, the first of which is that after two symbols
        ahead = np.tril(np.abs(beside[:, 1:] - beside[:, :1]).max((0, -1)) > rounding, -2)
        if ahead.any():
            place, prediction = np.argwhere(ahead)[0]
            raise ValueError(
                f"model: what {name} predicts after {prediction + 2} symbols depends on symbol {place + 1}; exact sums need "
                "models that do not look ahead"
            )


def _chances_of(model: Any, symbols: np.ndarray) -> tuple[np.ndarray, float]:
    """The probabilities that a model predicts, shape (groups, sequences, T − 2, S), and what rounding may change in them."""
    sequences = jnp.asarray(symbols.reshape(-1, symbols.shape[-1]), jnp.int32)
    chances, size, eps = jax.device_get(_softmax_of(model, sequences))
    return chances.reshape(*symbols.shape[:2], *chances.shape[1:]), float(np.sqrt(eps) + 100 * eps * size)


@lru_cache(maxsize=2)  # of at most 2 GiB each
def objective_on_a_set(process: TrainingSet, task: FewShot) -> FiniteObjective:
    """Return the objective of a training set: the mean over its prompts."""
    count = process.prompts
    with jax.ensure_compile_time_eval():
        batches = _in_batches(process.table(task.examples), np.full(count, 1 / count))
    return FiniteObjective(process, task, *batches)


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
    chances = _chances(_probabilities(process, _all_sequences(symbols, horizon)), symbols, horizon)
    with jax.ensure_compile_time_eval():
        weighted = np.asarray(task.weights_array())[:, None] * chances
        batches = _in_batches(_all_sequences(symbols, horizon - 1), weighted)
    return AllContextsObjective(process, task, *batches)


def _probabilities(process: SymbolProcess, sequences: np.ndarray) -> np.ndarray:
    """Return the probabilities of all sequences, shape (n,), with the sum 1 to the last digit."""
    name, given = type(process).__name__, process.probabilities_of(sequences)
    if given is None:
        raise TypeError(
            f"Enumeration: {name} does not tell the probability of a sequence; define probabilities_of, or "
            "use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    found = np.asarray(given)
    if found.shape != (len(sequences),) or found.dtype.kind not in "fiu":
        raise ValueError(
            f"Enumeration: probabilities_of of {name} must return one number for each of the {len(sequences)} sequences, got "
            f"shape {found.shape} of {found.dtype}"
        )
    total = float(found.sum())
    if not (found.min() >= 0 and abs(total - 1) <= _SUM_TOLERANCE):
        raise ValueError(
            f"Enumeration: what probabilities_of of {name} returns for all sequences must be ≥ 0 and have the sum 1, got "
            f"{float(found.min()):.3g} as the smallest and the sum {total:.12g}; return probabilities, not logarithms"
        )
    return found / total


def _all_sequences(symbols: int, length: int) -> np.ndarray:
    """Return all sequences in the order of their digits, shape (S^length, length)."""
    digits = np.unravel_index(np.arange(symbols**length), (symbols,) * length)
    return np.stack(digits, -1).astype(np.int32)


def _chances(probabilities: np.ndarray, symbols: int, horizon: int) -> np.ndarray:
    """Return P(c) P(s|c_1 … c_t) of all contexts c for t = 2 … T − 1, shape (S^{T−1}, T − 2, S).

    Args:
        probabilities: of all sequences, shape (S^T,).
        symbols: S.
        horizon: T.
    """
    contexts = probabilities.reshape(-1, symbols).sum(1)
    found = np.empty((len(contexts), horizon - 2, symbols))
    for t in range(2, horizon):
        after = probabilities.reshape(symbols**t, symbols, -1).sum(-1)
        total = after.sum(1, keepdims=True)
        follows = np.divide(after, total, out=np.zeros_like(after), where=total > 0)
        found[:, t - 2] = contexts[:, None] * np.repeat(follows, len(contexts) // len(follows), 0)
    return found


def _in_batches(samples: Any, probabilities: np.ndarray) -> tuple[Any, Array]:
    count = len(probabilities)
    batches = -(-count // _BATCH)
    size = -(-count // batches)
    place = np.arange(batches * size).reshape(batches, size)
    chosen = np.where(place < count, place, 0)
    filled = probabilities[chosen]
    filled[place >= count] = 0
    return jax.tree.map(lambda array: jnp.asarray(np.asarray(array)[chosen]), samples), jnp.asarray(filled)


@quick_jit
def _softmax_of(model: Any, symbols: Array) -> tuple[Array, Array, float]:
    """The predicted probabilities, the largest finite logit, and the precision of the logits."""
    logits = model.predictions(symbols)
    if not jnp.issubdtype(logits.dtype, jnp.inexact):
        logits = logits.astype(float)
    size = jnp.max(jnp.where(jnp.isfinite(logits), jnp.abs(logits), 0))
    return jax.nn.softmax(logits), size, float(jnp.finfo(logits.dtype).eps)


@eqx.filter_jit
def _sum(objective: FiniteObjective, model: Any) -> Array:
    of_batch = jax.checkpoint(lambda batch: objective.of_batch(model, *batch))
    return jnp.sum(jax.lax.map(of_batch, (objective.samples, objective.probabilities)))
