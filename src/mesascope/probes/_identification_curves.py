"""How a model and the learners fitted to it compare: after each number of examples, and pairwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import named_key
from mesascope.objectives import Task

from ._answers import answers
from ._candidates import answers_of
from ._fit import Evidence
from ._identification import Identification
from ._intervals import Measured, bootstrapped, ratio
from ._metrics import squared
from ._problems import Problems, draw_problems

MODEL = "model"
_FURTHEST = 4.0  # the largest relative difference there is; also of predictions that are not finite
# What resembles each other stands together: predictions without inputs, kernels, steps of descent, solvers, Bayes.
_BY_FAMILY = (
    "zero",
    "last-token",
    "average",
    "nearest-neighbours",
    "kernel-smoother",
    "gradient-descent",
    "preconditioned-gradient-descent",
    "online-gradient-descent",
    "momentum",
    "nesterov",
    "chebyshev",
    "gradient-descent++",
    "newton",
    "conjugate-gradients",
    "least-squares",
    "lasso",
    "ridge",
    "recursive-least-squares",
    "kalman-filter",
    "posterior-mean",
    "dirichlet-posterior",
)


class Curves(NamedTuple):
    r"""How a model and the learners fitted to it compare, on tasks that they were not fitted to.

    In distances and differences tasks count as they do when `identify` judges; in errors all count alike.

    Attributes:
        lengths: the numbers of examples n, shape (k,).
        errors: squared errors $E\|\hat y - y\|^2$ after n examples, of "model" and of every learner; shapes (k,).
        distances: relative distances $E\|f - g\|^2/E\|f\|^2$ of every learner from the model; shapes (k,).
        names: "model", then the learners, those that resemble each other side by side.
        differences: $E\|g - h\|^2 / \tfrac12(E\|g\|^2 + E\|h\|^2)$, in 0 … 4, of all of `names`, pooled over the numbers of
            examples; shape (names, names).
    """

    lengths: np.ndarray
    errors: Mapping[str, Measured]
    distances: Mapping[str, Measured]
    names: tuple[str, ...]
    differences: np.ndarray


def identification_curves(
    model: Any,
    process: Any,
    task: Task,
    found: Identification,
    *,
    tasks: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Curves:
    """Ask a model again, and compare its answers with those of the learners that `identify` has fitted to it.

    Args:
        model: the model.
        process: what draws the data.
        task: which context lengths count.
        found: what `identify` found.
        tasks: as `identify` was given them, and so the seed: the tasks are then those that it judged by.
        seed: of the tasks and of the bootstrap.
        level: of the intervals.

    Raises:
        TypeError, ValueError: as `identify`.
    """
    drawn = draw_problems(process, task, tasks, named_key(seed, "identify", "tasks"))
    problems = drawn.part(drawn.tasks // 2, drawn.tasks)
    order = {name: place for place, name in enumerate(_BY_FAMILY)}
    entries = sorted(found.ranking, key=lambda entry: order.get(entry.learner, len(order)))
    asked = answers(model, problems)
    weights = Evidence(problems, asked).weights[:, problems.lengths]
    answered = answers_of([entry.algorithm for entry in entries], problems)
    learners = {entry.learner: answer for entry, answer in zip(entries, answered, strict=True)}
    given = {MODEL: asked, **learners}
    with np.errstate(over="ignore", invalid="ignore"):
        return Curves(
            problems.lengths,
            {name: _error(one, problems, level, seed) for name, one in given.items()},
            {name: _distance(asked, one, problems, weights, level, seed) for name, one in learners.items()},
            tuple(given),
            _differences(list(given.values()), problems, weights),
        )


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
    """What is not finite becomes a number so large that it counts as infinitely far: 0 · ∞ must not arise."""
    return np.where(np.isfinite(values), values, 1e300)


def _differences(predictions: list[np.ndarray], problems: Problems, weights: np.ndarray) -> np.ndarray:
    def size(values: np.ndarray) -> float:
        return float(np.sum(squared(values)[:, problems.lengths] * weights))

    sizes = np.array([size(one) for one in predictions])
    apart = np.array([[size(one - other) for other in predictions] for one in predictions])
    relative = ratio(apart, (sizes[:, None] + sizes) / 2)
    return np.where(np.isfinite(relative), np.minimum(relative, _FURTHEST), _FURTHEST)
