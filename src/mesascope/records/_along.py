"""The record of an identification along training: what was found at every checkpoint, and the numbers of its figure."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from ._dataset import write_dataset
from ._identification import CurveRecord, IdentificationVerdict, MixtureRecord, Number, RankedRecord
from ._plain import PlainMapping
from ._provenance import Provenance
from ._sealed import read_sealed, write_sealed

if TYPE_CHECKING:
    import xarray

ALONG_FORMAT = "mesascope.along/1"
"""The format that the file of an identification along training names."""


class StageRecord(BaseModel, frozen=True, extra="forbid"):
    """What `identify` finds at one checkpoint, on the data of the process.

    Attributes:
        step: the number of training steps before it.
        verdict, candidates, headline, reasons, ranking, mixtures: as of an identification.
    """

    step: int
    verdict: IdentificationVerdict
    candidates: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...]
    ranking: Annotated[tuple[RankedRecord, ...], Field(min_length=1)]
    mixtures: tuple[MixtureRecord, ...]


class StrategyRecord(BaseModel, frozen=True, extra="forbid"):
    """A learner with fixed hyperparameters, with which all checkpoints are compared.

    Attributes:
        name: what it is called: the id of the learner, with a number where several strategies have the same.
        learner: the id of the learner.
        hyperparameters: its hyperparameters.
        step: the checkpoint to which they were fitted; None for a learner that was given.
    """

    name: str
    learner: str
    hyperparameters: PlainMapping
    step: int | None


class Transition(BaseModel, frozen=True, extra="forbid"):
    """A change of the nearest strategy.

    Attributes:
        before, after: the names of the two strategies.
        step: where both are equally far from the model, by interpolation between two checkpoints.
        interval: two checkpoints, between which the change is with confidence, over tasks.
    """

    before: str
    after: str
    step: Number
    interval: tuple[Number, Number]


class AlongRecord(BaseModel, frozen=True, extra="forbid"):
    """The algorithm of a model along its training, as plain numbers; see `mesascope.probes.AlongTraining`.

    Attributes:
        headline: the strategies in the order in which they are nearest, with the steps of the changes.
        stages: what was found at every checkpoint.
        strategies: learners with which all checkpoints are compared.
        weights: the weight of each strategy in the nearest convex mixture of all, at every checkpoint.
        sums: of the weights of each strategy and all before it.
        told: whether the tasks tell these weights, at every checkpoint.
        unexplained: the relative distance of this mixture from the model.
        distances: the relative distance of each strategy from the model.
        transitions: the changes of the nearest strategy.
        process, task: the data, in a few words.
        tasks, seed, tolerance, level: the settings.
        spec: the specification.
        provenance: versions, commit, platform and time.
    """

    headline: str
    stages: Annotated[tuple[StageRecord, ...], Field(min_length=2)]
    strategies: Annotated[tuple[StrategyRecord, ...], Field(min_length=1)]
    weights: tuple[CurveRecord, ...]
    sums: tuple[CurveRecord, ...]
    told: tuple[bool, ...]
    unexplained: CurveRecord
    distances: tuple[CurveRecord, ...]
    transitions: tuple[Transition, ...]
    process: str
    task: str
    tasks: int
    seed: int
    tolerance: float
    level: float
    spec: PlainMapping
    provenance: Provenance

    @property
    def steps(self) -> tuple[int, ...]:
        """The checkpoints."""
        return tuple(stage.step for stage in self.stages)

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        for curve in (*self.weights, *self.sums, self.unexplained, *self.distances):
            if {len(curve.value), len(curve.low), len(curve.high)} != {len(self.stages)}:
                raise ValueError(f"{curve.name!r}: give one value for each of {len(self.stages)} checkpoints")
        if len(self.told) != len(self.stages):
            raise ValueError(f"told: give one value for each of {len(self.stages)} checkpoints")
        for name in ("weights", "sums", "distances"):
            if len(getattr(self, name)) != len(self.strategies):
                raise ValueError(f"{name}: give one curve for each of {len(self.strategies)} strategies")
        return self

    def to_xarray(self) -> "xarray.Dataset":
        """Return weights, distances and verdicts as labelled arrays.

        Dimensions: step (n), strategy (k), end (2: low and high), learner (all that were compared). Variables: weight, distance
        (strategy, step) and unexplained (step), each with `…_interval` (…, end); told, verdict (step); learner_distance
        (learner, step).
        """
        import numpy as np
        import xarray

        names = [one.name for one in self.strategies]
        learners = sorted({entry.learner for entry in self.stages[0].ranking})
        entries = [{one.learner: one.distance for one in stage.ranking} for stage in self.stages]
        arrays: dict[str, Any] = {}
        for name, curves in (("weight", self.weights), ("distance", self.distances)):
            arrays[name] = ("strategy", "step"), [one.value for one in curves]
            ends = [list(zip(one.low, one.high, strict=True)) for one in curves]
            arrays[f"{name}_interval"] = ("strategy", "step", "end"), ends
        arrays["unexplained"] = "step", list(self.unexplained.value)
        left = list(zip(self.unexplained.low, self.unexplained.high, strict=True))
        arrays["unexplained_interval"] = ("step", "end"), left
        arrays["told"] = "step", np.array(self.told, np.int8)
        arrays["verdict"] = "step", [stage.verdict for stage in self.stages]
        distances = [[one[name] for one in entries] for name in learners]
        arrays["learner_distance"] = ("learner", "step"), distances
        places = {"step": list(self.steps), "strategy": names, "end": ["low", "high"], "learner": learners}
        return xarray.Dataset(arrays, places, {"headline": self.headline, "level": self.level})


def write_along(path: str | os.PathLike[str], record: AlongRecord) -> None:
    """Write a record to a sealed JSON file, and its arrays beside it as NetCDF, each atomically.

    Raises:
        RecordError: one cannot be written.
    """
    write_sealed(Path(path), ALONG_FORMAT, record)
    write_dataset(Path(path).with_suffix(".nc"), record.to_xarray())


def read_along(path: str | os.PathLike[str]) -> AlongRecord:
    """Read the JSON file that `write_along` wrote.

    Raises:
        RecordError: it is absent, torn, foreign or changed.
    """
    return read_sealed(Path(path), ALONG_FORMAT, AlongRecord)
