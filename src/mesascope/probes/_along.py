"""The result of `identify_along`, its text, and its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mesascope.records import AlongRecord, Change, CurveRecord, StageRecord, html_table, provenance

from ._headline import share
from ._identification import Asked, Identification
from ._intervals import Measured
from ._strategies import Strategy, labels
from ._weights import Weighed

if TYPE_CHECKING:
    import xarray


class Followed(NamedTuple):
    """The strategies at all n checkpoints.

    Attributes:
        distances: of each strategy from the model, shapes (n, K).
        weights: in the nearest convex mixture of all, shapes (n, K).
        sums: of the first 1 … K weights, shapes (n, K).
        unexplained: the distance of this mixture from the model, shapes (n,).
        determined: whether the tasks determine the weights, shape (n,).
    """

    distances: Measured
    weights: Measured
    sums: Measured
    unexplained: Measured
    determined: np.ndarray

    @classmethod
    def of(cls, weighed: Sequence[Weighed], level: float) -> Followed:
        """Return what was measured at each checkpoint, as arrays."""
        distances = [Measured(one.judgement.distance, *one.judgement.interval(level)) for one in weighed]
        return cls(
            _stacked(distances),
            _stacked([one.weights for one in weighed]),
            _stacked([one.sums for one in weighed]),
            _stacked([one.unexplained for one in weighed]),
            np.array([one.determined for one in weighed]),
        )


def _stacked(measured: Sequence[Measured]) -> Measured:
    return Measured(*map(np.stack, zip(*measured, strict=True)))


@dataclass(frozen=True, repr=False)
class AlongTraining:
    """The learning algorithm of a model along its training.

    Attributes:
        found: the identification of every checkpoint, by its number of steps; without curves.
        strategies: learners with fixed hyperparameters, with which all checkpoints are compared.
        followed: their distances and weights at every checkpoint, with intervals over tasks.
        changes: the changes of the nearest strategy.
        asked: the settings.
    """

    found: Mapping[int, Identification]
    strategies: tuple[Strategy, ...]
    followed: Followed
    changes: tuple[Change, ...]
    asked: Asked

    @property
    def steps(self) -> tuple[int, ...]:
        """The checkpoints: the numbers of training steps."""
        return tuple(self.found)

    @property
    def headline(self) -> str:
        """The strategies in the order in which they are nearest, the steps of the changes, and what the last one leaves."""
        names, distances = labels(self.strategies), self.followed.distances.value
        first = names[int(np.argmin(distances[0]))]
        later = [
            f"{one.after} from step {one.step:.0f} [{one.interval[0]}, {one.interval[1]}]"
            for one in self.changes
        ]
        last = self.changes[-1].after if later else first
        rest = f"at the end it leaves {share(float(distances[-1, names.index(last)]))} unexplained"
        none = "" if later else "; no other strategy is surely nearer later"
        return f"nearest to {', then '.join([first, *later])}{none}; {rest}"

    def record(self, spec: Mapping[str, Any] | None = None) -> AlongRecord:
        """Return the result as plain numbers, which `mesascope.records.write_along` stores.

        Args:
            spec: the specification from which it was made.
        """
        names, followed = labels(self.strategies), self.followed
        return AlongRecord(
            headline=self.headline,
            stages=tuple(_stage(step, one) for step, one in self.found.items()),
            strategies=tuple(one.record(name) for one, name in zip(self.strategies, names, strict=True)),
            weights=tuple(_curve(name, followed.weights.at((..., k))) for k, name in enumerate(names)),
            sums=tuple(_curve(name, followed.sums.at((..., k))) for k, name in enumerate(names)),
            determined=tuple(map(bool, followed.determined)),
            unexplained=_curve("mixture", followed.unexplained),
            distances=tuple(_curve(name, followed.distances.at((..., k))) for k, name in enumerate(names)),
            changes=self.changes,
            **self.asked._asdict(),
            spec=dict(spec or {}),
            provenance=provenance(),
        )

    def to_xarray(self) -> xarray.Dataset:
        """Return weights, distances and verdicts as labelled arrays; see `AlongRecord.to_xarray`."""
        return self.record().to_xarray()

    def __repr__(self) -> str:
        return f"<AlongTraining: {len(self.found)} checkpoints: {self.headline}>"

    def __str__(self) -> str:
        width = max(len(str(step)) for step in ("step", *self.steps))
        rows = [f"{step:>{width}}  {one.verdict:11}{one.headline}" for step, one in self.found.items()]
        return "\n".join([self.headline, f"{'step':>{width}}  {'verdict':11}", *rows])

    def _repr_html_(self) -> str:
        rows = [(str(step), one.verdict, one.headline) for step, one in self.found.items()]
        return html_table(escape(self.headline), rows, ("step", "verdict", "headline"))


def _stage(step: int, found: Identification) -> StageRecord:
    names = ("verdict", "candidates", "headline", "reasons", "mixtures")
    ranking = tuple(entry.model_dump() for entry in found.ranking)
    return StageRecord(step=step, ranking=ranking, **{name: getattr(found, name) for name in names})


def _curve(name: str, measured: Measured) -> CurveRecord:
    value, low, high = (tuple(map(float, end)) for end in measured)
    return CurveRecord(name=name, value=value, low=low, high=high)
