"""Comparisons of a model and the learners fitted to it: after each number of examples, and pairwise."""

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
_MAX_DIFFERENCE = 4.0  # the largest possible relative difference, also for predictions that are not finite
# Similar learners are adjacent: predictions without inputs, kernels, steps of descent, solvers, Bayes.
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
    r"""Comparisons of a model and the learners fitted to it, on tasks to which they were not fitted.

    In distances and differences tasks have the same weights as in `identify`; in errors all tasks have equal weights.

    Attributes:
        lengths: the numbers of examples n, shape (k,).
        errors: squared errors $E\|\hat y - y\|^2$ after n examples, of "model" and of every learner; shapes (k,).
        distances: relative distances $E\|f - g\|^2/E\|f\|^2$ of every learner from the model; shapes (k,).
        names: "model", then the learners, with similar ones adjacent.
        differences: $E\|g - h\|^2 / \tfrac12(E\|g\|^2 + E\|h\|^2)$, in 0 … 4, of all pairs of `names`, pooled over the
            numbers of examples; shape (names, names).
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
    """Return comparisons of the predictions of a model with those of the learners that `identify` fitted to it.

    Args:
        model: the model.
        process: the process of the data.
        task: the weights of context lengths.
        found: the result of `identify`.
        tasks: number of tasks; with the values of `tasks` and `seed` in `identify`, its test tasks are used.
        seed: seed of the tasks and of the bootstrap.
        level: confidence level of the intervals.

    Raises:
        TypeError, ValueError: as `identify`.
    """
    problems = draw_problems(process, task, tasks, named_key(seed, "identify", "tasks"))
    problems = problems.part(problems.tasks // 2, problems.tasks)
    order = {name: place for place, name in enumerate(_BY_FAMILY)}
    entries = sorted(found.ranking, key=lambda entry: order.get(entry.learner, len(order)))
    of_model = answers(model, problems)
    weights = Evidence(problems, of_model).weights[:, problems.lengths]
    of_learners = answers_of([entry.algorithm for entry in entries], problems)
    learners = {entry.learner: answer for entry, answer in zip(entries, of_learners, strict=True)}
    given = {MODEL: of_model, **learners}
    with np.errstate(over="ignore", invalid="ignore"):
        return Curves(
            problems.lengths,
            {name: _error(one, problems, level, seed) for name, one in given.items()},
            {
                name: _distance(of_model, one, problems, weights, level, seed)
                for name, one in learners.items()
            },
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
    """Return values with 1e300 for those that are not finite, which avoids 0 · ∞."""
    return np.where(np.isfinite(values), values, 1e300)


def _differences(predictions: list[np.ndarray], problems: Problems, weights: np.ndarray) -> np.ndarray:
    def size(values: np.ndarray) -> float:
        return float(np.sum(squared(values)[:, problems.lengths] * weights))

    sizes = np.array([size(one) for one in predictions])
    differences = np.array([[size(one - other) for other in predictions] for one in predictions])
    relative = ratio(differences, (sizes[:, None] + sizes) / 2)
    return np.where(np.isfinite(relative), np.minimum(relative, _MAX_DIFFERENCE), _MAX_DIFFERENCE)
