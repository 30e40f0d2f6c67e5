"""Candidates: learners with hyperparameters fitted to a model, and their distances from it on other tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.learners import Features, Learner
from mesascope.records import DIVERGENT

from ._evidence import Evidence
from ._in_parallel import in_parallel
from ._intervals import check_level, ratio, resampled_means
from ._least_squares import responses
from ._metrics import squared
from ._problems import Problems

# two learners are distinguished if the ratio of their distances from the model is larger
DISTANCE_RATIO = 2.0
_PIECE = 256  # tasks in one call of a learner
_ROUNDING = 1e-10  # relative distances below it are rounding errors


class Judgement(NamedTuple):
    """Relative distances of candidates from the model, averaged over the evidence.

    Attributes:
        distance: shape (candidates,).
        resampled: the same for resampled tasks, shape (1000, candidates).
    """

    distance: np.ndarray
    resampled: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends of the intervals, shapes (candidates,)."""
        low = np.quantile(self.resampled, (1 - level) / 2, axis=0, method="lower")
        return low, np.quantile(self.resampled, (1 + level) / 2, axis=0, method="higher")

    def further(self, best: int, level: float) -> np.ndarray:
        """Return which candidates are, with confidence, more than `DISTANCE_RATIO` times as far from the model as the best.

        The distances are compared on the same tasks, and the level holds for all comparisons together, as far as 1000 resamples
        tell: where they are many and the level is high, all resamples have to agree.
        """
        gap = self.resampled + _ROUNDING - DISTANCE_RATIO * (self.resampled[:, [best]] + _ROUNDING)
        share = (1 - level) / max(self.resampled.shape[1] - 1, 1)
        low = np.quantile(gap, share, axis=0, method="lower")
        return (low > 0) & (np.arange(len(low)) != best)


def judge(learners: Sequence[Learner], evidence: Sequence[Evidence], level: float, seed: int) -> Judgement:
    """Return distances E‖f − g‖²/E‖f‖² with the weights of the evidence, averaged over the evidence.

    Raises:
        ValueError: too few tasks for the level.
    """
    parts = [
        judge_answers(answers_of(learners, one.problems), one, level, seed + place)
        for place, one in enumerate(evidence)
    ]
    return Judgement(np.mean([p.distance for p in parts], 0), np.mean([p.resampled for p in parts], 0))


def answers_of(learners: Sequence[Learner], problems: Problems) -> list[np.ndarray]:
    """Return the predictions of learners, each of shape (batch, N + 1, m).

    Shared features are computed once. All pieces have the same size, so that every learner is compiled once.
    """
    size = min(_PIECE, problems.tasks)
    starts = range(0, problems.tasks, size)
    pieces = [_answers_of_piece(learners, problems, start, size) for start in starts]
    return [np.concatenate(parts)[: problems.tasks] for parts in zip(*pieces, strict=True)]


def _answers_of_piece(
    learners: Sequence[Learner], problems: Problems, start: int, size: int
) -> list[np.ndarray]:
    """Return the predictions for the tasks start … start + size − 1, with the last task repeated if there are fewer."""
    piece, features = problems.part(start, start + size), dict[type[Features], Any]()
    for learner in learners:
        if learner.reads not in features:
            features[learner.reads] = piece.features(type(learner))
    return list(in_parallel(lambda one: responses(one, features[one.reads]), learners))


def judge_answers(given: Sequence[np.ndarray], evidence: Evidence, level: float, seed: int) -> Judgement:
    """Return the distances of predictions, each of shape (batch, N + 1, m), from those of the model.

    Raises:
        ValueError: too few tasks for the level.
    """
    weights = evidence.weights
    check_level(level, evidence.problems.tasks)
    columns = [np.sum(squared(evidence.answers) * weights, -1)]
    most = DIVERGENT * columns[0].max() or 1e300
    for answers in given:
        off = squared(evidence.answers - answers)
        columns.append(np.minimum(np.sum(np.where(np.isfinite(off), off, 1e300) * weights, -1), most))
    table = np.stack(columns, -1)

    def distances(means: np.ndarray) -> Any:
        return ratio(means[..., 1:], means[..., :1])

    return Judgement(distances(table.mean(0)), distances(resampled_means(table, seed)))
