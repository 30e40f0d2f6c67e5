"""A study: one specification of a run, and the axes along which it changes."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import PlainSerializer, PlainValidator, PrivateAttr, ValidationInfo, model_validator

from mesascope.specs import Spec, SpecError, error_path, in_file_form, show

from .._read import parse_spec
from .._train import TrainSpec
from ._axes import AxisOrZip, Choice, Setting, StudyName, described, plain_value, refuse_repeated
from ._compute import FIELDS, SPECS, Kind
from ._subset import RandomSubset, SubsetField
from ._values import MAX_POINTS


def _base(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"must be a table with the fields of a run, got {show(value)}")
    return plain_value(value)


class Point(NamedTuple):
    """One run of a study.

    Attributes:
        place: its place along every axis.
        spec: the specification of the run.
    """

    place: tuple[int, ...]
    spec: Spec


class StudySpec(Spec):
    """A study: a run, and the axes along which its fields change.

    The points are the product of all axes, in which the last axis changes fastest, or a subset of it.

    Attributes:
        name: of the study, in its store.
        kind: what a run is: "flow" (descents too), "train", "identify", "certify" or "loss".
        base: the specification of a run of that kind; fields that are axes may be left out.
        axes: the fields that change, with their values.
        subset: which of the points, if not all: random (count, seed) or grid (every).
    """

    name: StudyName
    kind: Kind
    base: Annotated[dict[str, Any], PlainValidator(_base), PlainSerializer(in_file_form)]
    axes: tuple[AxisOrZip, ...] = ()
    subset: SubsetField | None = None
    _folder: Path = PrivateAttr(default=Path())

    @model_validator(mode="before")
    @classmethod
    def _refuse_a_run(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "base" not in data:
            for name in data:
                if name in FIELDS.difference(cls.model_fields):
                    raise SpecError(
                        f"this specifies a run (it has a {name}), not a study; put it into a table base, beside "
                        "name, kind and axes"
                    )
        return data

    @model_validator(mode="after")
    def _remember_the_folder(self, info: ValidationInfo) -> Self:
        self._folder = Path((info.context or {}).get("folder", ".")).absolute()
        return self

    @model_validator(mode="after")
    def _refuse_equal_axes(self) -> Self:
        paths: dict[tuple[str, ...], int] = {}
        names: dict[str, int] = {}
        for i, axis in enumerate(self.axes):
            with error_path("axes", i):
                refuse_repeated(axis)
            for path in axis.paths:
                steps = tuple(path.split("."))
                for known in paths:
                    if known[: len(steps)] == steps[: len(known)]:
                        raise SpecError(
                            f"{path} changes along axis {paths[known]} already; keep one of the two",
                            "axes",
                            i,
                        )
                paths[steps] = i
            for name in {axis.dimension, *axis.coordinates}:
                if name in names:
                    raise SpecError(
                        f"has the name {name}, which axis {names[name]} has already; give it another name",
                        "axes",
                        i,
                    )
            names |= {name: i for name in (axis.dimension, *axis.coordinates)}
        return self

    @model_validator(mode="after")
    def _refuse_too_many(self) -> Self:
        if self.size > MAX_POINTS:
            count = prod(self.shape)
            raise SpecError(
                f"{' × '.join(map(str, self.shape))} = {count} points are more than {MAX_POINTS}; take fewer values, or "
                'subset = {kind = "random", count = …}',
                "axes",
            )
        return self

    @property
    def folder(self) -> Path:
        """The folder in which relative paths of files start."""
        return self._folder

    @cached_property
    def choices(self) -> tuple[tuple[Choice, ...], ...]:
        """The places along every axis."""
        found = []
        for axis in self.axes:
            choices = axis.choices()
            places = range(len(choices)) if self.subset is None else self.subset.thinned(len(choices))
            found.append(tuple(choices[i] for i in places))
        return tuple(found)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many places every axis has."""
        return tuple(map(len, self.choices))

    @property
    def size(self) -> int:
        """How many points there are."""
        size = prod(self.shape)
        return min(size, self.subset.count) if isinstance(self.subset, RandomSubset) else size

    def places(self) -> Iterator[tuple[int, ...]]:
        """The places of all points."""
        size = prod(self.shape)
        for point in range(size) if self.subset is None else self.subset.chosen(size):
            place = []
            for length in reversed(self.shape):
                point, at = divmod(point, length)
                place.append(at)
            yield tuple(reversed(place))

    def point(self, place: tuple[int, ...]) -> Point:
        """Return one point, checked.

        Raises:
            SpecError: it cannot be run; the message names the place in the study, and the point.
        """
        data: Any = self.base
        for i, choice in enumerate(self._chosen(place)):
            for setting in choice.settings:
                data = _replaced(data, setting.path, setting.value, ("axes", i, *setting.place))
        try:
            spec = parse_spec(data, SPECS[self.kind], folder=self._folder)
            if isinstance(spec, TrainSpec) and spec.seeds is not None:
                raise SpecError(
                    'would make several runs of one; leave it out, and add an axis: path = "seed", seeds = …',
                    "seeds",
                )
        except SpecError as error:
            raise self.located(error, place) from None
        return Point(place, spec)

    def located(self, error: SpecError, place: tuple[int, ...]) -> SpecError:
        """The error of a point, with its place in the study and the name of the point."""
        return _located(error, self._chosen(place))

    def _chosen(self, place: tuple[int, ...]) -> list[Choice]:
        return [choices[at] for choices, at in zip(self.choices, place, strict=True)]

    def points(self) -> Iterator[Point]:
        """All points, checked one by one.

        Raises:
            SpecError: as for `point`.
        """
        return map(self.point, self.places())


def _replaced(
    table: Any, path: tuple[str, ...], value: Any, place: tuple[str | int, ...], done: int = 0
) -> Any:
    """A copy of a table, with one field changed."""
    if done == len(path):
        return value
    step = path[done]
    if isinstance(table, list):
        if not (step.isascii() and step.isdigit() and int(step) < len(table)):
            where = ".".join(path[:done])
            raise SpecError(
                f"{where} has the entries 0 … {len(table) - 1}, but no {step!r}; name one of them",
                *place[:2],
                "path",
            )
        inner = _replaced(table[int(step)], path, value, place, done + 1)
        return [*table[: int(step)], inner, *table[int(step) + 1 :]]
    if table is None and done:
        table = {}
    if not isinstance(table, dict):
        where = ".".join(path[:done])
        raise SpecError(
            f"{where} is {show(table)} in base, not a table with a field {step}; write it as a table",
            *place[:2],
            "path",
        )
    return {**table, step: _replaced(table.get(step), path, value, place, done + 1)}


def _located(error: SpecError, chosen: list[Choice]) -> SpecError:
    """The error with its place in the axis that sets the field, or in base."""
    which = ", ".join(map(described, chosen))
    what = f"{error.what} (at {which})" if which else error.what
    for i, choice in enumerate(chosen):
        for setting in choice.settings:
            if error.path == setting.path[:-1] and error.what.startswith(
                f"unknown field {setting.path[-1]!r}"
            ):
                return SpecError(what, "axes", i, *setting.place[:-2], "path")
            if _begins(error.path, setting):
                return SpecError(what, "axes", i, *setting.place, *error.path[len(setting.path) :])
    return SpecError(what, "base", *error.path)


def _begins(path: tuple[str | int, ...], setting: Setting) -> bool:
    return tuple(map(str, path[: len(setting.path)])) == setting.path
