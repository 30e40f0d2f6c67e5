"""Similarity of predictions: distance, R², cosine and similarity of errors, for each number of examples and pooled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._intervals import Measured, bootstrapped, ratio
from ._problems import Problems


class ByLength(NamedTuple):
    """A metric after each number of examples, and for all of them.

    Attributes:
        pooled: the metric for all numbers of examples, with the weights of the task; shapes ().
        lengths: the numbers of examples n, shape (k,).
        each: the metric at each of them, shapes (k,).
    """

    pooled: Measured
    lengths: np.ndarray
    each: Measured


def prediction_distance(
    model: Any, learner: Any, problems: Problems, *, level: float = 0.95, seed: int = 0
) -> ByLength:
    r"""Return the relative distance $E\|f - g\|^2 / E\|f\|^2$ of a learner's predictions $g$ from the model's $f$.

    0 if they agree; 1 is the distance of the learner `zero`. Both expectations are over tasks, pooled also over the
    numbers of examples, with their weights.

    Args:
        model: predictions f, shape (batch, N + 1, m).
        learner: predictions g, of the same shape.
        problems: the problems.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        ValueError: too few tasks for the level.
    """
    return _by_length(
        squared(model - learner), squared(model), problems, lambda a, b: ratio(a, b), level, seed
    )


def r_squared(
    model: Any, learner: Any, problems: Problems, *, level: float = 0.95, seed: int = 0
) -> ByLength:
    r"""Return the share of the model's variance over tasks that the learner explains: $R^2 = 1 - E\|f - g\|^2/E\|f - Ef\|^2$.

    At most 1. The mean $Ef$ is that over tasks after the same number of examples. Arguments as for `prediction_distance`.
    """
    spread = squared(model - model.mean(0))
    return _by_length(squared(model - learner), spread, problems, lambda a, b: 1 - ratio(a, b), level, seed)


def cosine(model: Any, learner: Any, problems: Problems, *, level: float = 0.95, seed: int = 0) -> ByLength:
    r"""Return the cosine of predictions, as vectors over tasks: $\mathrm{Re}\,E\langle g, f\rangle/\sqrt{E\|f\|^2\,E\|g\|^2}$.

    1 if one is a positive multiple of the other. Arguments as for `prediction_distance`.
    """
    return _cosines(model, learner, problems, level, seed)


def error_similarity(
    model: Any, learner: Any, problems: Problems, *, level: float = 0.95, seed: int = 0
) -> ByLength:
    r"""Return the similarity of errors: the cosine of $f - y$ and $g - y$, with $y$ the targets.

    Pooled it is that of fu2024: the mean over tasks of the cosine of the two vectors of all errors of a task. After each
    number of examples it is the cosine of the errors as vectors over tasks. Arguments as for `prediction_distance`.
    """
    targets, root = np.asarray(problems.targets), np.sqrt(problems.weights)[:, None]
    one, other = model - targets, learner - targets
    sizes = np.sqrt(squared(one * root).sum(-1) * squared(other * root).sum(-1))
    per_task = ratio(inner(one * root, other * root).sum(-1), sizes)
    pooled = bootstrapped(per_task[:, None], lambda means: means, level=level, seed=seed)
    by_length = _cosines(one, other, problems, level, seed)
    return by_length._replace(pooled=pooled.at(0))


def squared(values: np.ndarray) -> np.ndarray:
    """Return squared norms over the last axis; infinite, without a warning, if they overflow."""
    with np.errstate(over="ignore"):
        return np.sum(np.abs(values) ** 2, -1)


def inner(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return real parts of the inner products over the last axis."""
    return np.sum(np.real(np.conj(one) * other), -1)


def _cosines(one: Any, other: Any, problems: Problems, level: float, seed: int) -> ByLength:
    tables = [a[:, problems.lengths] for a in (inner(one, other), squared(one), squared(other))]
    weights = problems.weights[problems.lengths]

    def statistic(means: np.ndarray) -> np.ndarray:
        parts = np.split(means, 3, -1)
        both, first, second = (np.concatenate([p @ weights[:, None], p], -1) for p in parts)
        return ratio(both, np.sqrt(first * second))

    return _split(bootstrapped(np.concatenate(tables, -1), statistic, level=level, seed=seed), problems)


def _by_length(
    numerator: np.ndarray, denominator: np.ndarray, problems: Problems, of: Any, level: float, seed: int
) -> ByLength:
    """Return a function of two means: of their weighted sums over the numbers of examples, and at each of them."""
    weights = problems.weights[problems.lengths]
    tables = [a[:, problems.lengths] for a in (numerator, denominator)]

    def statistic(means: np.ndarray) -> np.ndarray:
        above, below = (np.concatenate([p @ weights[:, None], p], -1) for p in np.split(means, 2, -1))
        return of(above, below)

    return _split(bootstrapped(np.concatenate(tables, -1), statistic, level=level, seed=seed), problems)


def _split(measured: Measured, problems: Problems) -> ByLength:
    return ByLength(measured.at(0), problems.lengths, measured.at(slice(1, None)))
