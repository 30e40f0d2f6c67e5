"""The Bayesian prediction of symbols for tasks of a finite pool."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import softmax

from mesascope.core import concrete, finite_array

from ._arithmetic import einsum, real_in_precision_of
from ._counts import pair_counts, symbol_counts
from ._fitting import learner
from ._learner import Features, Learner
from ._moments import NormalEquations

_SUM_TOLERANCE = 1e-5  # rows that were made in single precision have sums that are 1 up to some of its roundings, 6e-8 each
_EXAMPLE_POOL = [
    [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]],
    [[0.2, 0.7, 0.1], [0.6, 0.2, 0.2], [0.1, 0.3, 0.6]],
]


@learner(
    "memorizing-symbols",
    symbols=True,
    of_process=(("tasks", "probabilities_of_tasks"),),
    family="bayes",
    tasks=100,
    flexibility=215,
    example={"tasks": _EXAMPLE_POOL},
)
class MemorizingSymbols(Learner):
    r"""The posterior mean of the probabilities of the next symbol under a uniform prior on the tasks of a pool.

    For Markov chains with transition matrices $\pi_1 \dots \pi_K$ and uniform first symbols, and for urns with probabilities
    $p_1 \dots p_K$,

    $$\hat y_b = \sum_k q_k \pi_k(a, b), \quad q_k \propto \prod_{a'b'} \pi_k(a', b')^{N_{a'b'}}, \qquad
    \hat y_b = \sum_k q_k p_k(b), \quad q_k \propto \prod_{b'} p_k(b')^{N_{b'}},$$

    with $a$ the query, the last symbol of the context, $N_{a'b'}$ the number of times that $b'$ followed $a'$ in it, and
    $N_{b'}$ the number of times that $b'$ stands in it, the query included. It is the best prediction of every symbol of
    sequences of the pool (the memorizing predictor of wurgaft2025).

    Where a context has probability 0 under every task, as contexts of other tasks may, the posterior is not defined. Then the
    tasks with the fewest symbols of probability 0 share the weight, in proportion to the probability of the other symbols: the
    limit of tasks that draw a uniform symbol with a small probability, which is the posterior where that is defined.

    Args:
        tasks: $\pi_1 \dots \pi_K$, shape (K, p, m), rows of the symbol before, or $p_1 \dots p_K$, shape (K, m).

    Raises:
        TypeError, ValueError: `tasks` is no such real array of probabilities, or does not fit the data.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    tasks: Array

    def __init__(self, tasks: Any):
        self.tasks = _checked_tasks(tasks)

    @property
    def rotation_invariant(self) -> bool:
        """No: the tasks of the pool are fixed."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        counts, query = self._counts(features), features.query
        possible = self.tasks > 0
        logs = jnp.where(possible, jnp.log(jnp.where(possible, self.tasks, 1)), 0)
        likelihood = _sums(counts, real_in_precision_of(counts, logs))
        excluded = _sums(counts, (~possible).astype(counts.dtype))
        fewest = excluded <= excluded.min(-1, keepdims=True) + 0.5  # integers but for rounding
        shares = softmax(jnp.where(fewest, likelihood, -jnp.inf), -1)
        tasks = real_in_precision_of(counts, self.tasks)
        if tasks.ndim == 2:
            return einsum("...k,km->...m", shares, tasks).astype(query.dtype)
        return einsum("...k,kpm,...p->...m", shares, tasks, query)

    def _counts(self, features: NormalEquations) -> Array:
        """Return what is counted for tasks of this shape: symbols, shape (…, m), or pairs, shape (…, p, m)."""
        inputs, outputs = features.query.shape[-1], features.cross.shape[-2]
        if self.tasks.shape[1:] not in ((outputs,), (inputs, outputs)):
            raise ValueError(
                f"tasks of shape {self.tasks.shape} do not fit {outputs} outputs of {inputs} inputs"
            )
        return (
            symbol_counts(features) if self.tasks.ndim == 2 else jnp.swapaxes(pair_counts(features), -1, -2)
        )


def _sums(counts: Array, of_tasks: Array) -> Array:
    """Return the sums over all symbols or pairs of their counts times a number of every task, shape (…, K)."""
    axes = "m" if of_tasks.ndim == 2 else "pm"
    return einsum(f"...{axes},k{axes}->...k", counts, of_tasks)


def _checked_tasks(value: Any) -> Array:
    tasks = finite_array("tasks", value)
    if tasks.ndim not in (2, 3) or not tasks.size or jnp.iscomplexobj(tasks):
        raise ValueError(f"tasks must be real, of shape (K, p, m) or (K, m), got shape {tasks.shape}")
    if not concrete(tasks):
        return tasks
    numbers = np.asarray(tasks, float)
    if numbers.min() < 0 or abs(numbers.sum(-1) - 1).max() > _SUM_TOLERANCE:
        raise ValueError(
            "tasks must have rows of probabilities, at least 0 and of sum 1; divide rows by their sums"
        )
    return jnp.asarray(tasks, float)
