"""Settings of data in which candidates differ, by comparison of their predictions."""

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
from ._evidence import MAX_MEDIANS
from ._intervals import ratio
from ._metrics import squared
from ._problems import Problems, length_weights, of_sample, sampled
from ._settings import Setting, SymbolSetting, settings_of

_TASKS = 32  # tasks per setting
_MAX_SIZE = 1e3  # of mean squared predictions, relative to the targets; settings in which a candidate exceeds it are not used


class Place(NamedTuple):
    """Where to evaluate the model: a setting, a number of examples, and the difference of the candidates there."""

    setting: Setting | SymbolSetting
    examples: int
    difference: float


class Differences:
    """Relative squared differences of candidates, in every setting and for every number of examples with positive weight.

    For two learners g and h it is E‖g − h‖² / ½(E‖g‖² + E‖h‖²), in 0 … 4, where no task counts more than ten medians of
    ½(‖g‖² + ‖h‖²): learners are not distinguished by rare tasks on which both diverge.
    """

    def __init__(self, learners: Sequence[Learner], process: Any, problems: Problems):
        self._lengths, self._settings = problems.lengths, settings_of(process)
        answers = [answer[:, self._lengths] for answer in answers_of(learners, problems)]
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.stack([_by_setting(a) for a in answers])
            sizes = squares.mean(2)  # (learners, settings, lengths)
            self._table = np.zeros((len(self._settings), len(learners), len(learners), len(self._lengths)))
            for i, j in combinations(range(len(learners)), 2):
                difference = _relative(_by_setting(answers[i] - answers[j]), (squares[i] + squares[j]) / 2)
                self._table[:, i, j] = self._table[:, j, i] = np.where(
                    np.isfinite(difference), difference, 4.0
                )
            targets = _by_setting(np.asarray(problems.targets)[:, self._lengths]).mean(1)
            self._usable = (sizes <= _MAX_SIZE * targets).all(0)  # (settings, lengths)

    def coincide(self, i: int, j: int, tolerance: float) -> bool:
        """Return whether the predictions of two candidates are equal in all settings, up to the tolerance."""
        return bool((self._table[:, i, j].mean(-1) <= tolerance).all())

    def best_place(
        self, candidates: Sequence[int], tolerance: float, asked_at: Sequence[str] = ()
    ) -> Place | None:
        """Return the place with the largest difference of the two closest candidates; None if it is within the tolerance.

        Settings in which the model was already evaluated, given by their descriptions, are excluded.
        """
        pairs = list(combinations(candidates, 2))
        table = np.stack([self._table[:, i, j] for i, j in pairs])  # (pairs, settings, lengths)
        score = np.where(self._usable, np.minimum(table, 1).min(0) + 1e-3 * np.minimum(table, 1).mean(0), 0)
        score[[setting.describe() in asked_at for setting in self._settings]] = 0
        at, length = np.unravel_index(int(np.argmax(score)), score.shape)
        smallest = float(table[:, at, length].min())
        if score[at, length] <= 0 or smallest <= tolerance:
            return None
        return Place(self._settings[int(at)], int(self._lengths[length]), smallest)


def problems_of_settings(process: Any, task: Task, key: Array) -> Problems:
    """Return equally many problems of every setting, concatenated, as `Differences` takes them."""
    settings = settings_of(process)
    sample_key, *keys = jax.random.split(key, 1 + len(settings))
    samples = _samples(process, task, sample_key)
    parts = [setting.changed(*data) for setting, *data in zip(settings, samples, keys, strict=True)]
    return of_sample(
        process, jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts), length_weights(task)
    )


def _samples(process: Any, task: Task, key: Array) -> Iterator[Any]:
    """Yield a sample for every setting; those from the unchanged process are drawn together."""
    sources = [setting.source(process) for setting in settings_of(process)]

    def draw(source: Any, tasks: int) -> Any:
        return jax.tree.map(np.asarray, sampled(source, key, task_length(task), tasks))

    joint, start = draw(process, _TASKS * sum(source is process for source in sources)), 0
    for source in sources:
        if source is process:
            chosen = slice(start, start + _TASKS)
            yield jax.tree.map(lambda a, c=chosen: a[c], joint)
            start += _TASKS
        else:
            yield draw(source, _TASKS)


def _by_setting(values: np.ndarray) -> np.ndarray:
    """Return squared norms, shape (settings, tasks, lengths)."""
    values = squared(values)
    return values.reshape(-1, _TASKS, values.shape[-1])


def _relative(off: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return mean differences relative to mean sizes: both (settings, tasks, lengths) → (settings, lengths)."""
    limit = MAX_MEDIANS * np.median(size, 1, keepdims=True)
    weights = np.where((size > limit) & (limit > 0), ratio(limit, size), 1.0)
    return ratio((weights * off).mean(1), (weights * size).mean(1))
