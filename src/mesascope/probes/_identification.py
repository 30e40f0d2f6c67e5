"""What `identify` found, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mesascope.learners import Learner

from ._algebra import Reading

Verdict = Literal["identified", "ambiguous", "none"]


class Ranked(NamedTuple):
    """A learner beside the model.

    Attributes:
        learner: its id.
        hyperparameters: as fitted: numbers, and nested lists for matrices.
        distance: relative distance E‖f − g‖²/E‖f‖² on the data of the process, on tasks that it was not fitted to, none
            of which counts more than ten median ones.
        interval: of the distance.
        contains: ids of learners that, as fitted, are this one.
        algorithm: the learner itself.
    """

    learner: str
    hyperparameters: dict[str, Any]
    distance: float
    interval: tuple[float, float]
    contains: tuple[str, ...]
    algorithm: Learner


class Separation(NamedTuple):
    """Data on which the model was asked because candidates could not be told apart before.

    Attributes:
        setting: how the data differ from those of the process.
        examples: the number of examples.
        candidates: who could not be told apart.
        difference: relative squared difference of the two of them that are closest there.
        distances: of every candidate from the model there, with all fitted anew to all data; empty if the model's
            predictions are not finite there.
        decided: whether the candidates fit all data together, so that it counts.
    """

    setting: str
    examples: int
    candidates: tuple[str, ...]
    difference: float
    distances: dict[str, float]
    decided: bool


@dataclass(frozen=True)
class Identification:
    """The algorithm that a model runs in context.

    Attributes:
        verdict: "identified": one learner is within tolerance, and all others are further away; "ambiguous": several that
            could not be told apart; "none": no learner is within tolerance.
        candidates: the ids that the verdict speaks of: one, several or none.
        ranking: all learners: the candidates, then the others, each nearest first.
        separated_by: where the model was asked to tell candidates apart.
        reasons: the verdict in sentences.
        reading: what the weights themselves say, for linear attention; None for other models.
    """

    verdict: Verdict
    candidates: tuple[str, ...]
    ranking: tuple[Ranked, ...]
    separated_by: tuple[Separation, ...]
    reasons: tuple[str, ...]
    reading: Reading | None

    def entry(self, learner: str) -> Ranked:
        """The place of a learner in the ranking, by its id.

        Raises:
            KeyError: it is not in the ranking.
        """
        for entry in self.ranking:
            if entry.learner == learner:
                return entry
        raise KeyError(learner)

    def __str__(self) -> str:
        lines = [f"verdict: {self.verdict}" + (f": {', '.join(self.candidates)}" if self.candidates else "")]
        lines += [f"  {reason}" for reason in self.reasons]
        lines.append(f"{'learner':34}{'distance':>11}  {'interval':24}hyperparameters")
        for entry in self.ranking:
            low, high = entry.interval
            shown = ", ".join(f"{k}={_short(v)}" for k, v in entry.hyperparameters.items())
            lines.append(f"{entry.learner:34}{entry.distance:11.3e}  {f'[{low:.2e}, {high:.2e}]':24}{shown}")
        if self.reading is not None:
            lines.append(f"weights: {self.reading.describe()}")
        return "\n".join(lines)


def plain_hyperparameters(learner: Learner) -> dict[str, Any]:
    """Numbers and nested lists, without those that are left out."""
    return {k: np.asarray(v).tolist() for k, v in learner.hyperparameters.items() if v is not None}


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"{'×'.join(map(str, np.shape(value)))} entries"
    return f"{value:.5g}"
