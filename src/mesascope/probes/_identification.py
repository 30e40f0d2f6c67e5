"""The result of `identify`, its text, and its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, SkipValidation

from mesascope.learners import Learner
from mesascope.records import (
    Beyond,
    IdentificationRecord,
    IdentificationVerdict,
    MixtureRecord,
    RankedRecord,
    Separation,
    html_table,
    is_short,
    provenance,
)

from ._algebra import Reading
from ._identification_curves import Curves
from ._intervals import Measured


class Ranked(RankedRecord):
    """A learner compared with the model, as it is recorded, and the learner itself.

    Attributes:
        algorithm: the learner, with the fitted hyperparameters.
    """

    hyperparameters: dict[str, Any]
    algorithm: SkipValidation[Learner] = Field(exclude=True, repr=False)


class Asked(NamedTuple):
    """The settings of an identification.

    Attributes:
        process, task: the data, in a few words.
        tasks, seed, tolerance, level: the arguments of `identify`.
    """

    process: str
    task: str
    tasks: int
    seed: int
    tolerance: float
    level: float


@dataclass(frozen=True, repr=False)
class Identification:
    """The learning algorithm of a model in context.

    Attributes:
        headline: the algorithm, or the family of algorithms, and how much of the predictions it leaves unexplained.
        verdict: "identified": one learner is within tolerance, and all others are farther away; "ambiguous": several
            learners could not be distinguished; "mixture": none is within tolerance, and one convex mixture is; "none": no
            learner and no mixture that was tried is within tolerance.
        candidates: the ids of the learners of the verdict: one, several or none; of mixtures the ids of all parts.
        ranking: all learners, each alone: the candidates, then the others, each sorted by distance.
        separated_by: the additional data on which the model was evaluated to distinguish candidates.
        reasons: the reasons of the verdict, in sentences.
        beyond: the distance of the first learner of the ranking from the model on other data; empty without `search`, and for
            mixtures.
        reading: the interpretation of the weights, for linear attention; None for other models.
        asked: the settings.
        mixtures: where no learner is within tolerance, the mixtures of the fewest learners that are, the simplest first;
            several cannot be told apart.
        compare: evaluates the model again, for `curves`; it is lost in copies by pickle.
    """

    verdict: IdentificationVerdict
    candidates: tuple[str, ...]
    ranking: tuple[Ranked, ...]
    separated_by: tuple[Separation, ...]
    reasons: tuple[str, ...]
    reading: Reading | None
    headline: str
    beyond: tuple[Beyond, ...]
    asked: Asked
    mixtures: tuple[MixtureRecord, ...]
    compare: Callable[[], Curves] | None = field(compare=False)

    @cached_property
    def curves(self) -> Curves:
        """Errors and distances of the model and the learners by number of examples, evaluated when they are first used.

        Raises:
            ValueError: the model has changed since, or this is a copy without it.
        """
        if self.compare is None:
            raise ValueError("curves: this copy has no model; use them once before it is pickled")
        return self.compare()

    def without_model(self) -> Identification:
        """Return a copy that does not keep the model, and has no curves."""
        return replace(self, compare=None)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the model, which pickle may not know how to store."""
        return self.__dict__ | {"compare": None}

    def record(self, spec: Mapping[str, Any] | None = None, *, curves: bool = True) -> IdentificationRecord:
        """Return the result as plain numbers, which `mesascope.records.write_identification` stores.

        Args:
            spec: the specification from which it was made.
            curves: whether it holds `curves`, which figures need.
        """
        parts = {name: getattr(self, name) for name in ("verdict", "candidates", "reasons", "headline")}
        return IdentificationRecord(
            **parts,
            **self.asked._asdict(),
            ranking=tuple(entry.model_dump() for entry in self.ranking),
            separated_by=self.separated_by,
            beyond=self.beyond,
            mixtures=self.mixtures,
            reading=None if self.reading is None else _reading(self.reading),
            spec=dict(spec or {}),
            provenance=provenance(),
            curves=_curves(self.curves) if curves else None,
        )

    def entry(self, learner: str) -> Ranked:
        """Return the entry of a learner in the ranking, by its id.

        Raises:
            KeyError: it is not in the ranking.
        """
        for entry in self.ranking:
            if entry.learner == learner:
                return entry
        raise KeyError(learner)

    def __repr__(self) -> str:
        return f"<Identification: {self.verdict}: {self.headline}>"

    def _repr_html_(self) -> str:
        """Return headline, reasons and the table of learners for notebooks."""
        rows = ((entry.learner, *texts) for entry, *texts in self._rows())
        table = html_table(
            f"{self.verdict}: {self.headline}", rows, ("learner", "distance", "interval", "hyperparameters")
        )
        return f"{table}<ul>{''.join(f'<li>{escape(reason)}</li>' for reason in self.reasons)}</ul>"

    def _rows(self) -> Iterator[tuple[Ranked, str, str, str]]:
        """Yield every learner with its distance, interval and hyperparameters as texts."""
        for entry in self.ranking:
            low, high = entry.interval
            shown = ", ".join(f"{k}={_short(v)}" for k, v in entry.hyperparameters.items())
            yield entry, entry.distance_text(".3e"), f"[{low:.2e}, {high:.2e}]", shown

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.headline}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines.append(f"{'learner':34}{'distance':>11}  {'interval':24}hyperparameters")
        for entry, distance, interval, shown in self._rows():
            lines.append(f"{entry.learner:34}{distance:>11}  {interval:24}{shown}".rstrip())
        if self.reading is not None:
            lines.append(f"weights: {self.reading.describe()}")
        return "\n".join(lines)


def plain_hyperparameters(learner: Learner) -> dict[str, Any]:
    """Return hyperparameters as numbers and nested lists, without those that are None or that the process of the data has."""
    how = learner.fitting
    given = {name for name, _ in how.of_process}
    given |= {name for name, _ in how.of_process_if_any if np.ndim(getattr(learner, name))}
    fitted = {k: v for k, v in learner.hyperparameters.items() if v is not None and k not in given}
    return {k: np.asarray(v).tolist() for k, v in fitted.items()}


def _short(value: Any) -> str:
    if is_short(value):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, list):
        return f"{'×'.join(map(str, np.shape(value)))} entries"
    return f"{value:.5g}"


def _reading(reading: Reading) -> Any:
    fields = {name: value for name, value in reading._asdict().items() if name != "learner"}
    return {**fields, "signs": reading.signs.tolist(), "description": reading.describe()}


def _curves(curves: Curves) -> Any:
    def records(measured: Mapping[str, Measured]) -> Any:
        return tuple({"name": name, **one._asdict()} for name, one in measured.items())

    return {
        "lengths": curves.lengths.tolist(),
        "errors": records(curves.errors),
        "distances": records(curves.distances),
        "names": curves.names,
        "differences": curves.differences.tolist(),
    }
