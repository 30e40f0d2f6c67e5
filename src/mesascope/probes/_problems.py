"""In-context problems: examples, queries and targets for every number of examples, from sequences or prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from mesascope.core import quick_jit
from mesascope.learners import Learner, features_of, prompt_examples, sequence_examples
from mesascope.objectives import Task, check_task, task_length
from mesascope.processes import FewShot, Prompts

_LARGE = 2**24  # bytes of features that are computed again


@dataclass(frozen=True)
class Problems:
    r"""A batch of in-context problems: after $n = 0, \dots, N$ examples $(x_i, y_i)$ the output of a query is predicted.

    Sequences $x_1 \dots x_t$ are the examples $(x_i, x_{i+1})$, $i < t$, with the query $x_t$: $n = t - 1$. Prompts are
    the examples, with the next input as query. Symbols are one-hot vectors here, and integers for models.

    Attributes:
        sample: the data in the form of models: tokens (batch, N + 1, d), symbols (batch, N + 1), or `Prompts` of N + 1 pairs.
        x: inputs of the examples, shape (batch, N, p).
        y: their outputs, shape (batch, N, m).
        queries: shape (batch, N + 1, p); `queries[:, n]` follows after n examples.
        targets: the true outputs, shape (batch, N + 1, m).
        weights: weights of the numbers of examples n = 0 … N, shape (N + 1,), not negative, with sum 1.
    """

    sample: Any
    x: Array
    y: Array
    queries: Array
    targets: Array
    weights: np.ndarray
    _kept: dict[Any, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    @property
    def prompts(self) -> bool:
        """Whether the data are prompts; sequences of tokens otherwise."""
        return isinstance(self.sample, Prompts)

    @property
    def symbols(self) -> bool:
        """Whether the data are sequences of symbols, for which models predict probabilities."""
        return not self.prompts and self.sample.ndim == 2

    @property
    def tasks(self) -> int:
        """The number of problems in the batch."""
        return int(self.x.shape[0])

    @property
    def lengths(self) -> np.ndarray:
        """The numbers of examples n with positive weight."""
        return np.flatnonzero(self.weights)

    def part(self, start: int, stop: int) -> Problems:
        """Return the problems start … stop − 1; if there are fewer, the last one stands for those that are missing."""
        if (start, stop) == (0, self.tasks):
            return self
        if (start, stop) not in self._kept:
            few = stop > self.tasks
            chosen = np.minimum(np.arange(start, stop), self.tasks - 1) if few else slice(start, stop)
            sample = Prompts(*(a[chosen] for a in self.sample)) if self.prompts else self.sample[chosen]
            x, y, queries, targets = (a[chosen] for a in (self.x, self.y, self.queries, self.targets))
            self._kept[start, stop] = Problems(sample, x, y, queries, targets, self.weights)
        found: Problems = self._kept[start, stop]
        return found

    def features(self, kind: type[Learner]) -> Any:
        """Return what learners of a kind read, and keep it unless it is large: fits and judgements ask for it many times."""
        if kind.reads in self._kept:
            return self._kept[kind.reads]
        found = features_of(kind, self.x, self.y, self.queries)
        if sum(leaf.nbytes for leaf in jax.tree.leaves(found)) <= _LARGE:
            self._kept[kind.reads] = found
        return found


def require_problems(problems: object) -> None:
    """Refuse anything but problems.

    Raises:
        TypeError: the type is another one.
    """
    if not isinstance(problems, Problems):
        raise TypeError(
            f"problems: must be what draw_problems(process, task, tasks, key) returns, got {type(problems).__name__}"
        )


def draw_problems(process: Any, task: Task, tasks: int, key: Array) -> Problems:
    """Draw independent problems of a process, with the weights of the task.

    Raises:
        TypeError: `task` is not a task, the process has no sampler, or one is of sequences and the other of prompts.
    """
    check_task(process, task)
    return of_sample(process, sampled(process, key, task_length(task), tasks), length_weights(task))


@partial(quick_jit, level=0)
def sampled(process: Any, key: Array, horizon: int, batch: int) -> Any:
    """Return a sample of a process; processes that differ only in numbers share one compiled program."""
    return process.sample(key, horizon, batch)


def length_weights(task: Task) -> np.ndarray:
    """Return the weights of n = 0 … N examples: those of the context lengths t = n + 1, or of the example counts n."""
    weights = np.asarray(task.weights_array(), float)
    return weights if isinstance(task, FewShot) else np.concatenate([[0.0], weights])


def vocabulary(process: Any) -> int | None:
    """Return the number of symbols of a process, or None for other data."""
    return getattr(process, "vocabulary", None)


def of_sample(process: Any, sample: Any, weights: np.ndarray) -> Problems:
    """Return the problems of a sample of a process, with weights of n = 0 … N, shape (N + 1,).

    Args:
        process: the process.
        sample: tokens x_1 … x_{N+2}, shape (batch, N + 2, d), symbols (batch, N + 2), or `Prompts` of N + 1 pairs.
        weights: weights that are not negative, at least one positive.
    """
    weights = weights / weights.sum()
    if isinstance(sample, Prompts):
        x, y = sample
        return Problems(sample, *prompt_examples(x, y), y[:, :, None], weights)
    states = vocabulary(process)
    tokens = sample if states is None else jax.nn.one_hot(sample, states, dtype=float)
    return Problems(sample[:, :-1], *sequence_examples(tokens[:, :-1]), tokens[:, 1:], weights)
