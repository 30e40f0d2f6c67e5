"""The record of an identification: the answer, and the numbers that its figures show."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, model_validator

from ._plain import PlainMapping, PlainValue, as_list, plain
from ._provenance import Provenance
from ._sealed import read_sealed, write_sealed

IDENTIFICATION_FORMAT = "mesascope.identification/1"
"""The format that the file of an identification names."""

# "inf" and "nan" are read as numbers and written by name: JSON has none for them
Number = Annotated[float, PlainSerializer(plain)]
Numbers = Annotated[tuple[Number, ...], BeforeValidator(as_list)]

IdentificationVerdict = Literal["identified", "mixture", "ambiguous", "none"]
"""What `identify` says of a model."""


class SymbolDistances(BaseModel, frozen=True, extra="forbid"):
    """How far the probabilities of a learner are from those of the model, on tasks to which it was not fitted.

    Attributes:
        excess_cross_entropy: E Σ f log(f/g) in nats: the cross-entropy of the learner against the model, less the entropy of
            the model; infinite where the learner excludes a symbol that the model does not.
        excess_interval: its confidence interval over tasks.
        total_variation: E ½ Σ |f − g|.
        variation_interval: its confidence interval over tasks.
    """

    excess_cross_entropy: Number
    excess_interval: tuple[Number, Number]
    total_variation: Number
    variation_interval: tuple[Number, Number]


_SHOWN = 6
DIVERGENT = 4.0
"""The most that ‖f − g‖² of a task counts, relative to the largest ‖f‖² that counts; a learner that is farther diverges."""


def is_short(value: object) -> bool:
    """Whether a hyperparameter is a list of so few numbers that texts show all of them."""
    return (
        isinstance(value, list) and len(value) <= _SHOWN and not any(isinstance(one, list) for one in value)
    )


class RankedRecord(BaseModel, frozen=True, extra="forbid"):
    """A learner compared with the model.

    Attributes:
        learner: its id.
        hyperparameters: the fitted hyperparameters: numbers, and nested lists for matrices.
        distance: relative distance E‖f − g‖²/E‖f‖² on the data of the process, on tasks to which it was not fitted. No
            ‖f‖² counts more than ten medians, no ‖f − g‖² more than four times the largest of these.
        interval: confidence interval of the distance.
        contains: ids of learners that are equivalent to this one with the fitted hyperparameters.
        or_more: whether larger values of its integer, such as more steps, fit as well.
        diverges: whether its predictions are far larger than the model's: a distance above 4.
        of_symbols: other distances of probabilities; None for other data.
    """

    learner: str
    hyperparameters: PlainMapping
    distance: Number
    interval: tuple[Number, Number]
    contains: tuple[str, ...]
    or_more: bool = False
    diverges: bool = False
    of_symbols: SymbolDistances | None = None

    def distance_text(self, form: str) -> str:
        """Return the distance in a format of Python's, or `> 4` where it diverges."""
        return f"> {DIVERGENT:g}" if self.diverges else format(self.distance, form)


class Beyond(BaseModel, frozen=True, extra="forbid"):
    """The nearest learner and the model out of distribution.

    Attributes:
        setting: how the data differ from those of the process.
        examples: the number of examples.
        distance: relative distance of the learner from the model there; NaN if the model does not answer.
        interval: confidence interval of the distance.
    """

    setting: str
    examples: int
    distance: Number
    interval: tuple[Number, Number]


class Separation(BaseModel, frozen=True, extra="forbid"):
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
    difference: Number
    distances: dict[str, Number]
    decided: bool


class ReadingRecord(BaseModel, frozen=True, extra="forbid"):
    """The algorithm read from the weights; see `mesascope.probes.Reading`."""

    algorithm: str
    step_size: Number
    signs: tuple[int, ...]
    preconditioner: PlainValue
    output_map: PlainValue
    remainder: Number
    disagreement: Number
    description: str


class CurveRecord(BaseModel, frozen=True, extra="forbid"):
    """A quantity after each number of examples.

    Attributes:
        name: what it belongs to: a learner's id, or "model".
        value: the quantity.
        low, high: the ends of its intervals over tasks.
    """

    name: str
    value: Numbers
    low: Numbers
    high: Numbers


class CurvesRecord(BaseModel, frozen=True, extra="forbid"):
    """How model and learners compare, in numbers for figures; see `mesascope.probes.Curves`.

    Attributes:
        lengths: the numbers of examples n.
        errors: squared errors of the model, then of the learners.
        distances: relative distances of the learners from the model.
        names: whose predictions are compared in `differences`: the model, then learners by family.
        differences: relative squared differences of their predictions, in 0 … 4; a matrix.
    """

    lengths: Annotated[tuple[int, ...], Field(min_length=1)]
    errors: tuple[CurveRecord, ...]
    distances: tuple[CurveRecord, ...]
    names: tuple[str, ...]
    differences: tuple[Numbers, ...]

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        for curve in (*self.errors, *self.distances):
            if {len(curve.value), len(curve.low), len(curve.high)} != {len(self.lengths)}:
                raise ValueError(
                    f"curve {curve.name!r}: give one value for each of {len(self.lengths)} lengths"
                )
        if {len(self.names)} != {len(self.differences), *map(len, self.differences)}:
            raise ValueError(
                f"differences: give a square matrix with one row for each of {len(self.names)} names"
            )
        for field, curves, named in (
            ("errors", self.errors, self.names),
            ("distances", self.distances, self.names[1:]),
        ):
            if sorted(curve.name for curve in curves) != sorted(named):
                raise ValueError(f"{field}: give one curve for each name")
        return self


MAX_PARTS = 3
"""The largest number of learners in a mixture."""


class MixturePart(BaseModel, frozen=True, extra="forbid"):
    """A learner of a mixture.

    Attributes:
        learner: its id.
        hyperparameters: the fitted hyperparameters.
        weight: its weight; the mean, where weights depend on the number of examples.
        interval: confidence interval of the weight, or of its mean, over tasks; 0 … 1 where the tasks do not determine it.
    """

    learner: str
    hyperparameters: PlainMapping
    weight: Number
    interval: tuple[Number, Number]


class MixtureRecord(BaseModel, frozen=True, extra="forbid"):
    r"""A convex mixture of learners that explains a model: $\sum_k \pi_k g_k$, $\pi_k \ge 0$, $\sum_k \pi_k = 1$.

    Attributes:
        parts: the learners with their weights.
        distance: as for a learner.
        interval: confidence interval of the distance.
        condition: condition number of the Gram matrix of the learners' predictions, each divided by its size, without those
            that are 0.
        different: whether no two of the learners predict the same to the tolerance.
        determined: whether the tasks tell the weights: learners are different, and no interval holds both 0.05 and 0.95.
        lengths: the numbers of examples on which the weights depend; empty where they are the same for all.
        weights: the weight of each learner after each of these numbers.
    """

    parts: Annotated[tuple[MixturePart, ...], Field(min_length=2, max_length=MAX_PARTS)]
    distance: Number
    interval: tuple[Number, Number]
    condition: Number
    different: bool
    determined: bool
    lengths: tuple[int, ...] = ()
    weights: tuple[CurveRecord, ...] = ()


class IdentificationRecord(BaseModel, frozen=True, extra="forbid"):
    """The algorithm that a model runs in context, as plain numbers; see `mesascope.probes.Identification`.

    Attributes:
        verdict, candidates, ranking, separated_by, reasons, reading, headline, beyond, mixtures: what was found.
        process, task: the data, in a few words.
        tasks, seed, tolerance, level: the settings.
        spec: the specification of the identification.
        provenance: versions, commit, platform and time.
        curves: the data of figures; None where none were asked for.
    """

    verdict: IdentificationVerdict
    candidates: tuple[str, ...]
    ranking: Annotated[tuple[RankedRecord, ...], Field(min_length=1)]
    separated_by: tuple[Separation, ...]
    reasons: tuple[str, ...]
    reading: ReadingRecord | None
    headline: str = ""
    beyond: tuple[Beyond, ...] = ()
    mixtures: tuple[MixtureRecord, ...] = ()
    process: str
    task: str
    tasks: int
    seed: int
    tolerance: float
    level: float
    spec: PlainMapping
    provenance: Provenance
    curves: CurvesRecord | None = None

    @model_validator(mode="after")
    def _curves_are_of_the_ranking(self) -> Self:
        ranked = sorted(entry.learner for entry in self.ranking)
        if self.curves is not None and sorted(self.curves.names) != sorted(["model", *ranked]):
            raise ValueError("curves: give those of the model and of every learner of the ranking")
        return self


def write_identification(path: str | os.PathLike[str], record: IdentificationRecord) -> None:
    """Write a record to a sealed JSON file, atomically.

    Raises:
        RecordError: it cannot be written.
    """
    write_sealed(Path(path), IDENTIFICATION_FORMAT, record)


def read_identification(path: str | os.PathLike[str]) -> IdentificationRecord:
    """Read what `write_identification` wrote.

    Raises:
        RecordError: it is absent, torn, foreign or changed.
    """
    return read_sealed(Path(path), IDENTIFICATION_FORMAT, IdentificationRecord)
