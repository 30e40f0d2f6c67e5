"""The result of `identify`, and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mesascope.learners import Learner

from ._algebra import Reading

Verdict = Literal["identified", "ambiguous", "none"]


class Ranked(NamedTuple):
    """A learner compared with the model.

    Attributes:
        learner: its id.
        hyperparameters: the fitted hyperparameters: numbers, and nested lists for matrices.
        distance: relative distance E‖f − g‖²/E‖f‖² on the data of the process, on tasks to which it was not fitted, none
            of which counts more than ten medians.
        interval: confidence interval of the distance.
        contains: ids of learners that are equivalent to this one with the fitted hyperparameters.
        algorithm: the learner.
    """

    learner: str
    hyperparameters: dict[str, Any]
    distance: float
    interval: tuple[float, float]
    contains: tuple[str, ...]
    algorithm: Learner


class Separation(NamedTuple):
    """Additional data on which the model was evaluated to distinguish candidates.

    Attributes:
        setting: how the data differ from those of the process.
        examples: the number of examples.
        candidates: the candidates that could not be distinguished.
        difference: relative squared difference of the two candidates that are closest on these data.
        distances: distance of every candidate from the model on these data, after all were fitted again to all data; empty
            if the model's predictions are not finite.
        decided: whether a candidate fits all data together; if not, these data are not used.
    """

    setting: str
    examples: int
    candidates: tuple[str, ...]
    difference: float
    distances: dict[str, float]
    decided: bool


@dataclass(frozen=True)
class Identification:
    """The learning algorithm of a model in context.

    Attributes:
        verdict: "identified": one learner is within tolerance, and all others are farther away; "ambiguous": several
            learners could not be distinguished; "none": no learner is within tolerance.
        candidates: the ids of the learners of the verdict: one, several or none.
        ranking: all learners: the candidates, then the others, each sorted by distance.
        separated_by: the additional data on which the model was evaluated to distinguish candidates.
        reasons: the reasons of the verdict, in sentences.
        reading: the interpretation of the weights, for linear attention; None for other models.
    """

    verdict: Verdict
    candidates: tuple[str, ...]
    ranking: tuple[Ranked, ...]
    separated_by: tuple[Separation, ...]
    reasons: tuple[str, ...]
    reading: Reading | None

    def entry(self, learner: str) -> Ranked:
        """Return the entry of a learner in the ranking, by its id.

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
    """Return hyperparameters as numbers and nested lists, without those that are None."""
    return {k: np.asarray(v).tolist() for k, v in learner.hyperparameters.items() if v is not None}


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"{'×'.join(map(str, np.shape(value)))} entries"
    return f"{value:.5g}"
