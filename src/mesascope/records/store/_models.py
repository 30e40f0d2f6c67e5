"""The records of a store: planned runs, runs that have ended, and studies."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, Field, StringConstraints, model_validator

from mesascope.records._plain import PlainMapping
from mesascope.records._provenance import Provenance

# Also names of folders and files: they cannot lead out of the store, and differ where upper and lower case are one.
RUN_ID = r"[0-9a-f]{32}"
STUDY_NAME = r"[a-z0-9][a-z0-9._-]{0,99}"
"""A regular expression for names of studies."""

RunId = Annotated[str, StringConstraints(pattern=rf"^{RUN_ID}$")]
Kind = Annotated[str, StringConstraints(min_length=1, max_length=40)]
StudyName = Annotated[str, StringConstraints(pattern=rf"^{STUDY_NAME}$")]
# The text of an exception may hold half a character (in the name of a file, say), which UTF-8 has no form for.
Told = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "backslashreplace").decode())]
Label = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str


class PlannedRun(BaseModel, frozen=True, extra="forbid"):
    """What is to be computed, recorded before the computation begins.

    Attributes:
        id: 32 hexadecimal digits, the beginning of the `identity` of kind, spec and code.
        kind: the computation: flow, train, identify, certify, loss.
        spec: its specification, defaults filled in, as a file would write it.
        code: the version of the code that its numbers depend on.
    """

    id: RunId
    kind: Kind
    spec: PlainMapping
    code: str


class RunRecord(PlannedRun):
    """A run that has ended.

    Times of day may go backwards; durations are measured with a monotonic clock.

    Attributes:
        id, kind, spec, code: as planned; see `PlannedRun`.
        status: `done` or `failed`.
        outcome: the results: numbers, strings, nested lists of numbers.
        error: why it failed, in one line; None where it is done.
        traceback: where it failed.
        attempts: how many times it was begun, ≥ 1.
        started, ended: UTC times, ISO 8601.
        seconds: duration of the last attempt, ≥ 0; of runs that were computed together, its share.
        batch: how many runs the compiled program took at once, on which last digits depend; 1 where it took this one alone.
        provenance: versions, commit and platform.
        files: SHA-256 of every file beside this record that belongs to it, by name.
    """

    status: Annotated[
        Literal["done", "failed"],
        # its name in files, also in those of older versions
        Field(validation_alias=AliasChoices("status", "state"), serialization_alias="state"),
    ]
    outcome: PlainMapping = {}
    error: Told | None = None
    traceback: Told | None = None
    attempts: Annotated[int, Field(ge=1)] = 1
    started: str
    ended: str
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    batch: Annotated[int, Field(ge=1)] = 1
    provenance: Provenance
    files: dict[str, str] = {}

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if (self.status == "failed") != (self.error is not None):
            raise ValueError("a failed run says why in `error`, one that is done has none")
        return self


class StudyAxis(BaseModel, frozen=True, extra="forbid"):
    """One dimension of a study.

    Attributes:
        name: of the dimension.
        labels: the value at every place along it: its coordinate. Empty where only `coordinates` label it.
        coordinates: further coordinates along the same dimension, by name: of axes that are zipped.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[^/\s][^/]{0,99}$")]
    labels: tuple[Label, ...] = ()
    coordinates: dict[str, tuple[Label, ...]] = {}

    @property
    def size(self) -> int:
        """The number of places along this dimension."""
        return len(self.labels or next(iter(self.coordinates.values()), ()))

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        lengths = {len(one) for one in self.coordinates.values()} | {self.size}
        if lengths == {0} or len(lengths) > 1:
            raise ValueError(f"axis {self.name!r}: its coordinates need one length, at least 1")
        if self.name in self.coordinates:
            raise ValueError(f"axis {self.name!r}: its own coordinate is `labels`")
        return self


class StudyPoint(BaseModel, frozen=True, extra="forbid"):
    """A place in a study, and the run that fills it.

    Attributes:
        run: the run's id.
        place: index along every axis.
    """

    run: RunId
    place: tuple[int, ...]


class StudyRecord(BaseModel, frozen=True, extra="forbid"):
    """The runs of a study, and their places in it.

    Attributes:
        name: lower-case letters, digits, '.', '_' and '-'.
        kind: of its runs.
        spec: the study as its file wrote it.
        axes: its dimensions.
        points: the places that have a run, not necessarily all; two may share one.
    """

    name: StudyName
    kind: Kind
    spec: PlainMapping
    axes: tuple[StudyAxis, ...]
    points: tuple[StudyPoint, ...]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [name for axis in self.axes for name in (axis.name, *axis.coordinates)]
        if len(set(names)) != len(names):
            raise ValueError("two axes or coordinates have the same name")
        sizes = [axis.size for axis in self.axes]
        for point in self.points:
            inside = (0 <= at < size for at, size in zip(point.place, sizes, strict=False))
            if len(point.place) != len(sizes) or not all(inside):
                raise ValueError(f"place {point.place} of run {point.run} lies outside the axes")
        if len({point.place for point in self.points}) != len(self.points):
            raise ValueError("two runs have the same place")
        return self

    @property
    def runs(self) -> list[str]:
        """The ids of its runs, each once."""
        return list(dict.fromkeys(point.run for point in self.points))
