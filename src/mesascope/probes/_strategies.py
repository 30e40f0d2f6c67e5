"""The strategies of a training: the few learners, with fixed hyperparameters, that explain most of all its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mesascope.learners import Learner, Zero
from mesascope.records import StrategyRecord

from ._candidates import DISTANCE_RATIO, answers_of
from ._evidence import Evidence
from ._identification import Identification, Ranked, plain_hyperparameters
from ._weights import mean_over_tasks, nearest_weights, products

MAX_STRATEGIES = 4  # strategies of one training
_CHOSEN = 3  # of them, where none are given


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

    Candidates are the first learner of every verdict on single ones; where there is none, the simplest of those whose interval
    meets that of the nearest. Each has the hyperparameters of the checkpoint to which it is nearest. The answer 0 is taken if
    it is among them. Then one after another is taken that at least halves, at some checkpoint, what the nearest mixture
    leaves unexplained, by more than the tolerance; of several the one with which the mixtures leave least on average.

    Args:
        found: the identification of every checkpoint.
        seen: the predictions of every checkpoint on the tasks that learners are judged by; distances and weights of the
            strategies are measured on the same ones.
        tolerance: the largest distance at which a learner explains.
    """
    candidates = _candidates(found)
    answers = answers_of([one.learner for one in candidates], seen[0].problems)
    sums = [mean_over_tasks(products(answers, one)) for one in seen]

    def left(places: Sequence[int]) -> np.ndarray:
        few = [one.chosen(places) for one in sums]
        return np.array([min(float(one.unexplained(nearest_weights(one))), 1.0) for one in few])

    taken = [place for place, one in enumerate(candidates) if isinstance(one.learner, Zero)]
    while len(taken) < _CHOSEN:
        before = left(taken) if taken else np.ones(len(seen))
        more = {place: left([*taken, place]) for place in range(len(candidates)) if place not in taken}
        helping = [
            place
            for place, after in more.items()
            if ((before > DISTANCE_RATIO * after) & (before - after > tolerance)).any() or not taken
        ]
        if not helping:
            break
        taken.append(min(helping, key=lambda place: float(more[place].mean())))
    return sorted((candidates[place] for place in taken), key=lambda one: one.step or 0)


def _candidates(found: Mapping[int, Identification]) -> list[Strategy]:
    nearest: dict[str, tuple[Ranked, int]] = {}
    for step, one in found.items():
        entry = _simplest(one)
        before = nearest.get(entry.learner)
        if before is None or entry.distance < before[0].distance:
            nearest[entry.learner] = entry, step
    return [Strategy(entry.algorithm, step) for entry, step in nearest.values()]


def _simplest(found: Identification) -> Ranked:
    """Return the first learner of a verdict on single ones, or else the simplest whose interval meets that of the nearest."""
    if found.candidates and not found.mixtures:
        return found.entry(found.candidates[0])
    nearest = min(found.ranking, key=lambda entry: entry.distance)
    near = (entry for entry in found.ranking if entry.interval[0] <= nearest.interval[1])
    return min(near, key=lambda entry: type(entry.algorithm).fitting.flexibility)
