"""Where candidates part: their predictions beside each other in many settings of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from mesascope.learners import Learner
from mesascope.objectives import Task, task_length

from ._candidates import answers_of
from ._fit import MOST_MEDIANS
from ._intervals import ratio
from ._metrics import squared
from ._problems import Problems, length_weights, of_sample, sampled
from ._settings import Setting, SymbolSetting, settings_of

_TASKS = 32  # of every setting
_LARGEST = 1e3  # mean squared predictions, relative to the targets: a model is not asked where candidates diverge further


class Place(NamedTuple):
    """Where to ask the model: a setting, a number of examples, and how far candidates are apart there."""

    setting: Setting | SymbolSetting
    examples: int
    difference: float


class Differences:
    """Relative squared differences of candidates, in every setting and after every number of examples that counts.

    For two learners g and h it is E‖g − h‖² / ½(E‖g‖² + E‖h‖²), in 0 … 4, where no task counts more than ten of median
    size ½(‖g‖² + ‖h‖²): learners that part on one task in a hundred, where both explode, are not told apart by it.
    """

    def __init__(self, learners: Sequence[Learner], process: Any, task: Task, key: Array):
        weights = length_weights(task)
        self._lengths, self._settings = np.flatnonzero(weights), settings_of(process)
        problems = _problems(process, task, key, weights)
        answers = [answer[:, self._lengths] for answer in answers_of(learners, problems)]
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.stack([_by_setting(a) for a in answers])
            sizes = squares.mean(2)  # (learners, settings, lengths)
            self._table = np.zeros((len(self._settings), len(learners), len(learners), len(self._lengths)))
            for i, j in combinations(range(len(learners)), 2):
                apart = _relative(_by_setting(answers[i] - answers[j]), (squares[i] + squares[j]) / 2)
                self._table[:, i, j] = self._table[:, j, i] = np.where(np.isfinite(apart), apart, 4.0)
            targets = _by_setting(np.asarray(problems.targets)[:, self._lengths]).mean(1)
            self._usable = (sizes <= _LARGEST * targets).all(0)  # (settings, lengths)

    def coincide(self, i: int, j: int, tolerance: float) -> bool:
        """Whether two candidates answer alike in all settings, up to the tolerance."""
        return bool((self._table[:, i, j].mean(-1) <= tolerance).all())

    def best_place(
        self, candidates: Sequence[int], tolerance: float, asked_at: Sequence[str] = ()
    ) -> Place | None:
        """Where the two of them that are closest are furthest apart; None if nowhere by more than the tolerance.

        Settings where the model was asked already, by their descriptions, are left out.
        """
        pairs = list(combinations(candidates, 2))
        table = np.stack([self._table[:, i, j] for i, j in pairs])  # (pairs, settings, lengths)
        score = np.where(self._usable, np.minimum(table, 1).min(0) + 1e-3 * np.minimum(table, 1).mean(0), 0)
        score[[setting.describe() in asked_at for setting in self._settings]] = 0
        at, length = np.unravel_index(int(np.argmax(score)), score.shape)
        least = float(table[:, at, length].min())
        if score[at, length] <= 0 or least <= tolerance:
            return None
        return Place(self._settings[int(at)], int(self._lengths[length]), least)


def _problems(process: Any, task: Task, key: Array, weights: np.ndarray) -> Problems:
    """Equally many problems in every setting, one setting behind the other."""
    settings = settings_of(process)
    sample_key, *keys = jax.random.split(key, 1 + len(settings))
    samples = _samples(process, task, sample_key)
    parts = [setting.changed(*data) for setting, *data in zip(settings, samples, keys, strict=True)]
    return of_sample(process, jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts), weights)


def _samples(process: Any, task: Task, key: Array) -> Iterator[Any]:
    """A sample for every setting; those of the process itself are drawn at once."""
    sources = [setting.source(process) for setting in settings_of(process)]

    def drawn(source: Any, tasks: int) -> Any:
        return jax.tree.map(np.asarray, sampled(source, key, task_length(task), tasks))

    whole, start = drawn(process, _TASKS * sum(source is process for source in sources)), 0
    for source in sources:
        if source is process:
            chosen = slice(start, start + _TASKS)
            yield jax.tree.map(lambda a, c=chosen: a[c], whole)
            start += _TASKS
        else:
            yield drawn(source, _TASKS)


def _by_setting(values: np.ndarray) -> np.ndarray:
    """Squared norms, shape (settings, tasks, lengths)."""
    values = squared(values)
    return values.reshape(-1, _TASKS, values.shape[-1])


def _relative(off: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Means over tasks of differences relative to those of sizes, (settings, lengths); both (settings, tasks, lengths)."""
    most = MOST_MEDIANS * np.median(size, 1, keepdims=True)
    count = np.where((size > most) & (most > 0), ratio(most, size), 1.0)
    return ratio((count * off).mean(1), (count * size).mean(1))
