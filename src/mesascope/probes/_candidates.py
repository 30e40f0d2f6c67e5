"""Candidates: learners with hyperparameters fitted to a model, and how far each is from it on tasks of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.learners import Learner, predictions

from ._fit import Evidence
from ._intervals import check_level, ratio, resampled_means
from ._metrics import squared
from ._problems import Problems

APART = 2.0  # how many times as far from the model a learner must be to be told apart from another
_ROUNDING = 1e-10  # relative distances below it are rounding, whatever their quotients


class Judgement(NamedTuple):
    """Relative distances of candidates from the model, summed over the evidence.

    Attributes:
        distance: shape (candidates,).
        drawn: the same for tasks drawn again, shape (1000, candidates).
    """

    distance: np.ndarray
    drawn: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of the intervals, shapes (candidates,)."""
        low = np.quantile(self.drawn, (1 - level) / 2, axis=0, method="lower")
        return low, np.quantile(self.drawn, (1 + level) / 2, axis=0, method="higher")

    def further(self, best: int, level: float) -> np.ndarray:
        """Which candidates are, with confidence, more than `APART` times as far from the model as the best is.

        The distances are compared on the same tasks, and the level holds for all comparisons together.
        """
        gap = self.drawn + _ROUNDING - APART * (self.drawn[:, [best]] + _ROUNDING)
        share = (1 - level) / max(self.drawn.shape[1] - 1, 1)
        low = np.quantile(gap, share, axis=0, method="lower")
        return (low > 0) & (np.arange(len(low)) != best)


def judge(learners: Sequence[Learner], evidence: Sequence[Evidence], level: float, seed: int) -> Judgement:
    """Distances E‖f − g‖²/E‖f‖² with the weights of the evidence, added over the evidence.

    Raises:
        ValueError: too few tasks for the level.
    """
    parts = [_judge_one(learners, one, level, seed + place) for place, one in enumerate(evidence)]
    return Judgement(sum(p.distance for p in parts), sum(p.drawn for p in parts))  # type: ignore[arg-type]


def answers_of(learner: Learner, problems: Problems) -> np.ndarray:
    """The predictions of a learner, shape (batch, N + 1, m)."""
    return np.asarray(predictions(learner, problems.x, problems.y, problems.queries))


def _judge_one(learners: Sequence[Learner], evidence: Evidence, level: float, seed: int) -> Judgement:
    weights = evidence.weights
    check_level(level, evidence.problems.tasks)
    columns = [np.sum(squared(evidence.answers) * weights, -1)]
    for learner in learners:
        off = squared(evidence.answers - answers_of(learner, evidence.problems))
        columns.append(np.sum(np.where(np.isfinite(off), off, 1e300) * weights, -1))
    table = np.stack(columns, -1)

    def distances(means: np.ndarray) -> Any:
        return ratio(means[..., 1:], means[..., :1])

    return Judgement(distances(table.mean(0)), distances(resampled_means(table, seed)))
