"""Comparisons of a model and the learners fitted to it: after each number of examples, and pairwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import require_x64
from mesascope.learners import FAMILIES, Learner

from ._answers import answers
from ._candidates import answers_of
from ._evidence import Evidence
from ._intervals import Measured, bootstrapped, ratio
from ._metrics import squared
from ._problems import Problems

MODEL = "model"
_CHANGED = 1e-6  # relative squared difference of two answers to the same tasks, far above rounding
_MAX_DIFFERENCE = 4.0  # the largest possible relative difference, also for predictions that are not finite


class Curves(NamedTuple):
    r"""Comparisons of a model and the learners fitted to it, on tasks to which they were not fitted.

    In distances and differences tasks have the same weights as in `identify`; in errors all tasks have equal weights.

    Attributes:
        lengths: the numbers of examples n, shape (k,): all up to the largest, or the task's if the model reads no others.
        errors: squared errors $E\|\hat y - y\|^2$ after n examples, of "model" and of every learner; shapes (k,).
        distances: relative distances $E\|f - g\|^2/E\|f\|^2$ of every learner from the model; shapes (k,).
        names: "model", then the learners, with similar ones adjacent.
        differences: $E\|g - h\|^2 / \tfrac12(E\|g\|^2 + E\|h\|^2)$, in 0 … 4, of all pairs of `names`, pooled over the
            numbers of examples of the task; shape (names, names).
    """

    lengths: np.ndarray
    errors: Mapping[str, Measured]
    distances: Mapping[str, Measured]
    names: tuple[str, ...]
    differences: np.ndarray


def identification_curves(
    model: Any, judged: Evidence, fitted: Sequence[Learner], *, seed: int, level: float
) -> Curves:
    """Return comparisons of the predictions of a model with those of the learners that `identify` fitted to it.

    Args:
        model: the model.
        judged: the tasks to which nothing was fitted, with the answers of the model.
        fitted: the learners.
        seed: of the bootstrap.
        level: confidence level of the intervals.

    Raises:
        TypeError, ValueError: as `identify`, or the model has changed since.
    """
    require_x64("curves")
    problems, ordered = judged.problems, sorted(fitted, key=_place)
    asked, of_model = _asked(model, judged)
    weights = judged.weights
    shares = weights.sum(1, keepdims=True)
    of_learners = answers_of(ordered, problems)
    learners = {learner.name: answer for learner, answer in zip(ordered, of_learners, strict=True)}
    given = {MODEL: of_model, **learners}
    with np.errstate(over="ignore", invalid="ignore"):
        return Curves(
            asked.lengths,
            {name: _error(one, asked, level, seed) for name, one in given.items()},
            {name: _distance(of_model, one, asked, shares, level, seed) for name, one in learners.items()},
            tuple(given),
            _differences(list(given.values()), weights),
        )


def _asked(model: Any, judged: Evidence) -> tuple[Problems, np.ndarray]:
    """Return the problems with equal weights of all numbers of examples ≥ 1, or as they are if the model reads no others."""
    problems = judged.problems
    weights = np.ones(len(problems.weights))
    weights[0] = 0
    every = replace(problems, weights=weights / weights.sum())
    try:
        found = answers(model, every)
    except Exception:  # a model may raise any error on lengths for which it is not made
        return problems, judged.answers
    lengths = problems.lengths[problems.lengths > 0]
    before, now = judged.answers[:, lengths], found[:, lengths]
    if np.sum(np.abs(now - before) ** 2) > _CHANGED * np.sum(np.abs(before) ** 2):
        raise ValueError("model: its predictions have changed since it was identified; identify it again")
    return every, found


def _place(learner: Learner) -> tuple[int, int]:
    """Return the place of a learner in figures, where similar ones are adjacent."""
    fitting = type(learner).fitting
    return list(FAMILIES).index(fitting.family), fitting.flexibility


def _error(predictions: np.ndarray, problems: Problems, level: float, seed: int) -> Measured:
    off = _finite(squared(predictions - np.asarray(problems.targets)))[:, problems.lengths]
    return bootstrapped(off, lambda means: means, level=level, seed=seed)


def _distance(
    model: np.ndarray, learner: np.ndarray, problems: Problems, weights: np.ndarray, level: float, seed: int
) -> Measured:
    tables = [_finite(squared(one))[:, problems.lengths] * weights for one in (model - learner, model)]

    def statistic(means: np.ndarray) -> np.ndarray:
        return ratio(*np.split(means, 2, -1))

    return bootstrapped(np.concatenate(tables, -1), statistic, level=level, seed=seed)


def _finite(values: np.ndarray) -> np.ndarray:
    """Return values with 1e300 for those that are not finite, which avoids 0 · ∞."""
    return np.where(np.isfinite(values), values, 1e300)


def _differences(predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    lengths = np.flatnonzero(weights.sum(0))  # elsewhere predictions may be infinite, and 0 · ∞ is no number

    def size(values: np.ndarray) -> float:
        return float(np.sum(squared(values)[:, lengths] * weights[:, lengths]))

    sizes = np.array([size(one) for one in predictions])
    differences = np.array([[size(one - other) for other in predictions] for one in predictions])
    relative = ratio(differences, (sizes[:, None] + sizes) / 2)
    return np.where(np.isfinite(relative), np.minimum(relative, _MAX_DIFFERENCE), _MAX_DIFFERENCE)
