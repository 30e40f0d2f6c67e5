"""Axes of a study: the fields that change from run to run, with values and labels."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, ValidationError, ValidationInfo, model_validator

from mesascope.records import STUDY_NAME, canonical_json, plain
from mesascope.specs import Spec, SpecError, as_list, checked_at, first_error, in_file_form, show, show_text

from ._values import MAX_POINTS, LogRangeSpec, RangeSpec

Label: TypeAlias = int | float | str
Place: TypeAlias = tuple[str | int, ...]

_SOURCES = ("values", "range", "log_range", "seeds")
_LABELLED = {"label", "value"}
_PATH = re.compile(r"(?=.{1,80}$)[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")


class Setting(NamedTuple):
    """One field of a run.

    Attributes:
        path: the field, outermost name first.
        value: its value.
        place: the place in the axis where the value is written.
    """

    path: tuple[str, ...]
    value: Any
    place: Place


class Choice(NamedTuple):
    """One place along an axis.

    Attributes:
        labels: one for every field that changes.
        settings: the fields that change.
    """

    labels: tuple[Label, ...]
    settings: tuple[Setting, ...]


def plain_value(value: Any) -> Any:
    """A value as TOML and JSON files hold them."""
    try:
        return plain(as_list(value))
    except (TypeError, ValueError) as error:
        raise SpecError(str(error).removeprefix("value: ")) from None


def _values(value: Any) -> tuple[Any, ...]:
    given = as_list(value)
    if not isinstance(given, list | tuple) or not given:
        raise SpecError(f"must be a list of values, got {show(given)}")
    if len(given) > MAX_POINTS:
        raise SpecError(f"has {len(given)} entries, and {MAX_POINTS} are allowed; take fewer")
    return tuple(checked_at(plain_value, one, i) for i, one in enumerate(given))


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SpecError(
            f"must be letters, digits and ._+- (at most 80, a letter or digit first), got {show(value)}"
        )
    return value


def _study_name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(STUDY_NAME, value):
        raise SpecError(
            f"must be lower-case letters, digits, '.', '_' and '-' (at most 100, a letter or digit first), got {show(value)}"
        )
    return value


Name: TypeAlias = Annotated[str, PlainValidator(_name)]
StudyName: TypeAlias = Annotated[str, PlainValidator(_study_name)]


def _seeds(value: Any) -> tuple[int, ...] | int:
    given = as_list(value)
    if isinstance(given, bool) or not isinstance(given, int | list | tuple):
        raise SpecError(f"must be the number of seeds, or a list of seeds, got {show(given)}")
    if isinstance(given, int):
        if not 1 <= given <= MAX_POINTS:
            raise SpecError(f"must be the number of seeds, 1 … {MAX_POINTS}, or a list of seeds, got {given}")
        return given
    if not given:
        raise SpecError("must have at least 1 entry")
    for i, seed in enumerate(given):
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise SpecError(f"must be an integer 0 … 2**32 - 1, got {show(seed)}", i)
    return tuple(given)


def _path(value: Any) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise SpecError(f"must name a field of base, such as 'init.a', got {show(value)}")
    return value


class AxisSpec(Spec):
    """One field of base that changes, with exactly one of values, range, log_range and seeds.

    Attributes:
        path: the field: names joined by dots, places in lists as numbers: "init.a", "law.parts.0.probability".
        values: its values; a table `{label = …, value = …}` gives a value its label.
        range: equally spaced numbers.
        log_range: numbers with equal ratios.
        seeds: a list, or n for 0 … n − 1.
        name: of the dimension, by default the path.
    """

    path: Annotated[str, PlainValidator(_path)]
    values: Annotated[tuple[Any, ...] | None, PlainValidator(_values), PlainSerializer(in_file_form)] = None
    range: RangeSpec | None = None
    log_range: LogRangeSpec | None = None
    seeds: Annotated[int | tuple[int, ...] | None, PlainValidator(_seeds), PlainSerializer(in_file_form)] = (
        None
    )
    name: Name | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [source for source in _SOURCES if getattr(self, source) is not None]
        if len(given) != 1:
            found = "none is given" if not given else f"{' and '.join(given)} are given"
            raise SpecError(f"needs exactly one of {', '.join(_SOURCES)}; {found}")
        self.choices()  # refuses bad labels
        return self

    @property
    def source(self) -> str:
        """The field that holds its values."""
        return next(name for name in _SOURCES if getattr(self, name) is not None)

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that change."""
        return (self.path,)

    @property
    def dimension(self) -> str:
        """The name of the axis."""
        return self.name or self.path

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the labels along the axis, one for every field that changes."""
        return (self.dimension,)

    def choices(self) -> list[Choice]:
        """The places along the axis."""
        path = tuple(self.path.split("."))
        return [Choice((label,), (Setting(path, value, place),)) for label, value, place in self._labelled()]

    def _labelled(self) -> list[tuple[Label, Any, Place]]:
        if self.values is not None:
            return [(*_label(value, i), ("values", i)) for i, value in enumerate(self.values)]
        if self.seeds is not None:
            seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
            return [(seed, seed, ("seeds",)) for seed in seeds]
        name, source = ("range", self.range) if self.range is not None else ("log_range", self.log_range)
        assert source is not None  # _one_source
        return [(value, value, (name,)) for value in source.numbers()]


def refuse_repeated(axis: "AxisSpec | ZipSpec") -> None:
    """Refuse an axis with two places of equal labels.

    Raises:
        SpecError: names the places.
    """
    labels = [choice.labels for choice in axis.choices()]
    if len(set(labels)) == len(labels):
        return
    first = {label: i for i, label in reversed(list(enumerate(labels)))}
    place = next(i for i, label in enumerate(labels) if first[label] < i)
    label = ", ".join(map(show, labels[place]))
    fix = "keep one, or give them labels: {label = …, value = …}"
    if isinstance(axis, ZipSpec):
        raise SpecError(f"places {first[labels[place]]} and {place} are both {label}; {fix}", "zip")
    where = (axis.source, place) if axis.source == "values" else (axis.source,)
    raise SpecError(f"{label} is given twice; {fix}", *where)


def _label(value: Any, place: int) -> tuple[Label, Any]:
    """The label of a value, and the value without it."""
    if isinstance(value, Mapping):
        if set(value) == _LABELLED:
            label = value["label"]
            if not isinstance(label, str | int | float):
                raise SpecError(f"must be a string or a number, got {show(label)}", "values", place, "label")
            return (str(label).lower() if isinstance(label, bool) else label), value["value"]
        return str(value["kind"] if set(value) == {"kind"} else canonical_json(value)), value
    if isinstance(value, bool) or value is None:
        return show(value), value
    return (canonical_json(value) if isinstance(value, list) else value), value


class ZipSpec(Spec):
    """Several fields that change together, along one dimension.

    Attributes:
        zip: axes of equal length.
        name: of the dimension, by default the names of the axes, joined by "+".
    """

    zip: Annotated[tuple[AxisSpec, ...], Field(min_length=2)]
    name: Name | None = None

    @model_validator(mode="after")
    def _dimension_is_no_coordinate(self) -> Self:
        if self.name in self.coordinates:
            raise SpecError(f"{self.name} is the name of one of its axes; choose another", "name")
        return self

    @model_validator(mode="after")
    def _equally_long(self) -> Self:
        lengths = [len(axis.choices()) for axis in self.zip]
        for i, length in enumerate(lengths):
            if length != lengths[0]:
                raise SpecError(f"has {length} values, but axis 0 of the zip has {lengths[0]}", "zip", i)
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that change."""
        return tuple(axis.path for axis in self.zip)

    @property
    def dimension(self) -> str:
        """The name of the axis."""
        return self.name or "+".join(axis.dimension for axis in self.zip)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the labels along the axis, one for every field that changes."""
        return tuple(axis.dimension for axis in self.zip)

    def choices(self) -> list[Choice]:
        """The places along the axis."""
        columns = [axis.choices() for axis in self.zip]
        return [
            Choice(
                tuple(one.labels[0] for one in row),
                tuple(
                    setting._replace(place=("zip", i, *setting.place))
                    for i, one in enumerate(row)
                    for setting in one.settings
                ),
            )
            for row in zip(*columns, strict=True)
        ]


def _axis(value: Any, info: ValidationInfo) -> AxisSpec | ZipSpec:
    if isinstance(value, AxisSpec | ZipSpec):
        return value
    kind: type[AxisSpec] | type[ZipSpec]
    kind = ZipSpec if isinstance(value, Mapping) and "zip" in value else AxisSpec
    try:
        return kind.model_validate(value, context=info.context)
    except ValidationError as error:
        raise first_error(error) from None


AxisOrZip: TypeAlias = Annotated[
    AxisSpec | ZipSpec, PlainValidator(_axis), PlainSerializer(lambda axis: axis.model_dump(mode="json"))
]


def described(choice: Choice) -> str:
    """A place along an axis for messages: `init.a = 0.1, init.b = 2`."""
    pairs = (
        f"{'.'.join(setting.path)} = {show_text(str(label))}"
        for setting, label in zip(choice.settings, choice.labels, strict=True)
    )
    return ", ".join(pairs)
