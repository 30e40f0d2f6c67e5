"""The form of a training: the kinds of data and models are those of the registry."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from mesascope.dynamics import Optimizer
from mesascope.lab._form import (
    Form,
    FormField,
    Layout,
    Section,
    fields_of_kinds,
    form_fields,
    place_of,
    read_texts,
    write_texts,
)
from mesascope.lab._setting import read_sent
from mesascope.specs import known_kinds
from mesascope.studies import SpecError, TrainSpec

from ._presets import PRESETS

_FAMILIES = ("process", "model")
_LENGTHS = ("horizon", "examples")
_RUN = ("steps", "batch", "seed")
_DETAILS = ("precision", "held_out", "record_every")
_UNUSED = (
    "task",
    "seeds",
    "average",
    "evaluate_every",
    "checkpoint_every",
    "checkpoints_per_decade",
    "checkpoint_minutes",
)


@cache
def _fields() -> dict[str, FormField]:
    example = TrainSpec.model_validate(next(iter(PRESETS.values()))).model_dump(mode="json")
    own = {field.name: field for field in form_fields(TrainSpec, {**example, "horizon": 20})}
    steps = form_fields(Optimizer, Optimizer().specification(), "optimizer.")
    return own | {field.name: field for field in steps}


@cache
def training_layout() -> Layout:
    """Return the layout of a training."""
    optimizer = tuple(name for name in _fields() if name.startswith("optimizer."))
    return Layout(
        (
            Section("Data", "dataset", True, ("process", *_LENGTHS, "weights")),
            Section("Model", "hub", True, ("model",)),
            Section("Training", "tune", True, _RUN),
            Section("Optimizer and details", "speed", False, (*optimizer, *_DETAILS)),
        ),
        _FAMILIES,
        _fields(),
        _kinds,
        lambda form: [_unused_length(form)],
    )


def _kinds(family: str, form: Form) -> Collection[str]:
    """Of models those that read the data."""
    known = known_kinds(family)
    if family != "model":
        return known
    data = known_kinds("process")[form["process.kind"]].data
    return [kind for kind, one in known.items() if data in one.reads]


def _unused_length(form: Form) -> str:
    data = known_kinds("process")[form["process.kind"]].data
    return "horizon" if data == "prompts" else "examples"


def _shown(form: Form) -> list[FormField]:
    """The fields that the choices of a form leave to be filled in."""
    hidden = _unused_length(form)
    single = [field for name, field in _fields().items() if name in _all_names() and name != hidden]
    return [*fields_of_kinds(_FAMILIES, form), *single]


@cache
def _all_names() -> set[str]:
    return {name for section in training_layout().sections for name in section.names} - set(_FAMILIES)


def training_form(spec: TrainSpec) -> Form:
    """Return the form of a training."""
    table = spec.model_dump(mode="json", exclude_none=True)
    table["process"] = spec.source.specification()
    form = {f"{family}.kind": table[family]["kind"] for family in _FAMILIES}
    optimizer = {"optimizer": spec.optimizer.specification()}
    return form | write_texts(table | optimizer, _shown(form))


def with_kind(form: Form, family: str, kind: str) -> Form:
    """Return a form with another kind of data or model, whose fields begin with its example.

    A model that does not read other data is replaced by that of the first preset which does.
    """
    rest = {name: text for name, text in form.items() if not name.startswith(f"{family}.")}
    chosen = rest | {f"{family}.kind": kind}
    readable = _kinds("model", chosen)
    if chosen["model.kind"] in readable:
        return chosen
    known = (preset["model"]["kind"] for preset in PRESETS.values())
    return with_kind(chosen, "model", next(one for one in (*known, *readable) if one in readable))


def training_of(form: Form) -> TrainSpec:
    """Return the training of a form.

    Raises:
        SpecError: something is wrong in it; `training_place` says where to show that.
    """
    return read_training(read_texts(form, _FAMILIES, _shown(form)))


def read_training(table: Mapping[str, Any]) -> TrainSpec:
    """Return the training of a table that a browser sent.

    Raises:
        SpecError: it is not a specification, names a file, or has fields that the page does not use; with the field.
    """
    for name in _UNUSED:
        if name in table:
            raise SpecError("is not used on this page; mesascope train takes it", name)
    return read_sent(table, TrainSpec)


def training_place(error: SpecError, form: Form) -> str:
    """Return the field of the form that shows an error."""
    return place_of(error, form, _FAMILIES, _shown(form))
