"""The strategies of a training: the few learners, with fixed hyperparameters, that explain most of all its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mesascope.learners import Learner
from mesascope.records import StrategyRecord

from ._candidates import answers_of
from ._evidence import Evidence
from ._identification import Identification, Ranked, plain_hyperparameters
from ._weights import mean_over_tasks, nearest_weights, products

MOST = 4  # strategies of one training
_CHOSEN = 3  # of them, where none are given
_NOTHING = 1.0 + 1e-9  # the relative distance of the answer 0: a learner that is farther explains nothing


class Strategy(NamedTuple):
    """A learner with fixed hyperparameters.

    Attributes:
        learner: the learner.
        step: the checkpoint to which its hyperparameters were fitted; None for one that was given.
    """

    learner: Learner
    step: int | None

    def record(self, label: str) -> StrategyRecord:
        """Return it as plain numbers."""
        kind, values = type(self.learner).name, plain_hyperparameters(self.learner)
        return StrategyRecord(name=label, learner=kind, hyperparameters=values, step=self.step)


def labels(strategies: Sequence[Strategy]) -> list[str]:
    """Return what strategies are called: the ids of their learners, with a number where several have the same."""
    kinds = [type(one.learner).name for one in strategies]
    return [
        kind if kinds.count(kind) == 1 else f"{kind} {kinds[: place + 1].count(kind)}"
        for place, kind in enumerate(kinds)
    ]


def chosen_strategies(
    found: Mapping[int, Identification], seen: Sequence[Evidence], tolerance: float
) -> list[Strategy]:
    """Return up to three strategies, by the number of the checkpoint to which each was fitted.

    Candidates are the simplest learner of every verdict, or of the nearest where there is none, each with the hyperparameters
    of the checkpoint to which it is nearest. One after another, the one is added with which the nearest convex mixtures leave
    least unexplained, on average over the checkpoints, as long as that falls by more than the tolerance.

    Args:
        found: the identification of every checkpoint.
        seen: the predictions of every checkpoint on the tasks that learners are judged by.
        tolerance: the largest distance at which a learner explains.
    """
    candidates = _candidates(found)
    answers = answers_of([one.learner for one in candidates], seen[0].problems)
    sums = [mean_over_tasks(products(answers, one)) for one in seen]
    taken, left = list[int](), np.inf
    while len(taken) < min(_CHOSEN, len(candidates)):
        rest = [place for place in range(len(candidates)) if place not in taken]
        tried = dict[int, float]()
        for place in rest:
            few = [one.chosen([*taken, place]) for one in sums]
            tried[place] = float(np.mean([one.unexplained(nearest_weights(one)) for one in few]))
        best = min(tried, key=tried.__getitem__)
        if left - tried[best] <= tolerance:
            break
        taken, left = [*taken, best], tried[best]
    return sorted((candidates[place] for place in taken), key=lambda one: one.step or 0)


def _candidates(found: Mapping[int, Identification]) -> list[Strategy]:
    nearest: dict[str, tuple[Ranked, int]] = {}
    for step, one in found.items():
        entry = _simplest(one)
        before = nearest.get(entry.learner)
        if before is None or entry.distance < before[0].distance:
            nearest[entry.learner] = entry, step
    telling = [pair for pair in nearest.values() if pair[0].distance <= _NOTHING] or list(nearest.values())
    return [Strategy(entry.algorithm, step) for entry, step in telling]


def _simplest(found: Identification) -> Ranked:
    """Return the first candidate of a verdict on single learners, or else the simplest whose interval meets the nearest's."""
    if found.candidates and not found.mixtures:
        return found.entry(found.candidates[0])
    nearest = min(found.ranking, key=lambda entry: entry.distance)
    near = (entry for entry in found.ranking if entry.interval[0] <= nearest.interval[1])
    return min(near, key=lambda entry: type(entry.algorithm).fitting.flexibility)
