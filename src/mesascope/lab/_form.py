"""Forms: a text for every field, to a specification and back, errors at the field that they are about."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from mesascope.report import tex_to_text
from mesascope.specs import error_path, field_help, known_kinds
from mesascope.studies import FlowSpec, SpecError

from ._editors import Editor, editor_of, read_list, read_number, write_value
from ._setting import DEFAULT, read_setting

_MAX_LENGTH = 200_000  # characters of one field: some ten thousand numbers
_MAX_LABEL = 38  # characters that fit into a field
_MAX_HINT = 65  # characters that fit below it, in two lines

Form = dict[str, str]
"""Texts by field; also of fields that another choice hides."""

FAMILIES = ("law", "init")
"""Fields of a setting that are a kind with fields of its own."""
_SINGLE = ("dim", "horizon", "rho", "mask", "solver", "until", "tolerance", "max_steps")
_OBJECTIVES = {
    "every": "every prediction (autoregressive)",
    "last": "the last one only",
    "given": "weights by context length",
}
_CLAUSE_END = re.compile(r"[.;:,](?: |$)| (?=\()")


class FormField(NamedTuple):
    """One field of the form: its name, such as `law.scale`, and what the docstring and the type of the value say."""

    name: str
    label: str
    hint: str
    about: str
    editor: Editor
    example: Any  # as specification files have it; None if it has no value
    optional: bool

    def text(self, form: Form) -> str:
        """Return its text, that of the example in a form without it."""
        return form.get(self.name, "" if self.example is None else self.editor.write(self.example))


class Section(NamedTuple):
    """Fields that are shown together: the names of those of a layout, and of families."""

    title: str
    icon: str
    opened: bool
    names: tuple[str, ...]


class Layout(NamedTuple):
    """How the form of a specification is laid out."""

    sections: tuple[Section, ...]
    families: tuple[str, ...]  # fields that are a kind with fields of its own
    fields: Mapping[str, FormField]  # the other ones
    kinds: Callable[[str, Form], Iterable[str]]  # the kinds of a family that may be chosen
    hidden: Callable[[Form], Iterable[str]]  # names of fields that do not count now

    def label(self, family: str) -> str:
        """Return the name of a family as a field."""
        return self.fields[family].label


def form_fields(cls: type[Any], example: Mapping[str, Any], prefix: str = "") -> Iterator[FormField]:
    types = get_type_hints(cls, include_extras=True)
    for name, help_text, default in field_help(cls):
        if (editor := editor_of(types[name])) is not None:
            about = tex_to_text(help_text)
            label, _, rest = _CLAUSE_END.sub("\n", about.removeprefix("the "), count=1).partition("\n")
            if label.startswith(("`", '"')):  # a value, which names nothing
                label, rest = name.replace("_", " "), about
            if len(label) > _MAX_LABEL:
                label, rest = name.replace("_", " "), label
            hints = [rest.rstrip(".") if len(rest) <= _MAX_HINT else "", editor.hint]
            label, hint, about = (
                text.replace("`None`", "empty").replace("`", "")
                for text in (label, "; ".join(filter(None, hints)), about)
            )
            value = example.get(name)
            yield FormField(prefix + name, label or name, hint, about, editor, value, default is None)


def kind_title(kind: type[Any]) -> str:
    """Return the name of a class in words, without that of its family: `StudentT` is Student t, `DiagonalInit` Diagonal."""
    name = kind.__name__.removesuffix(kind.family.capitalize())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


@cache
def kind_fields(family: str, kind: str) -> tuple[FormField, ...]:
    """Return the fields of a law or start."""
    cls = known_kinds(family)[kind]
    return tuple(form_fields(cls, cls.example().specification(), f"{family}."))


@cache
def setting_fields() -> dict[str, FormField]:
    """Return the fields of a setting by name."""
    example = read_setting(DEFAULT).model_dump(mode="json", exclude_none=True)
    return {field.name: field for field in form_fields(FlowSpec, example)}


@cache
def setting_layout() -> Layout:
    """Return the layout of a setting."""
    weights = "t: weight, e.g. 2: 1, 5: 1/2"
    own = {
        "objective": FormField("objective", "objective", "", "", Editor(options=_OBJECTIVES), "every", False),
        "weights": FormField("weights", "weights", weights, "", Editor(lines=True), None, True),
    }
    return Layout(
        (
            Section("Data", "dataset", True, ("law", "dim", "horizon", "objective", "weights", "rho")),
            Section("Start of training", "flag", True, ("init", "mask")),
            Section("Solver", "tune", False, ("solver", "until", "tolerance", "max_steps")),
        ),
        FAMILIES,
        setting_fields() | own,
        lambda family, form: known_kinds(family),
        lambda form: () if form["objective"] == "given" else ("weights",),
    )


def fields_of_kinds(families: Iterable[str], form: Form) -> list[FormField]:
    """Return the fields of the kinds that a form has chosen."""
    return [field for family in families for field in kind_fields(family, form[f"{family}.kind"])]


def visible(form: Form) -> list[FormField]:
    """Return the fields that the choices of a form leave to be filled in, but objective and weights."""
    return [*fields_of_kinds(FAMILIES, form), *(setting_fields()[name] for name in _SINGLE)]


def write_texts(table: Mapping[str, Any], fields: Iterable[FormField]) -> Form:
    """Return the texts of fields, such as `law.scale`, of a specification as files have it."""
    form = {}
    for field in fields:
        family, _, name = field.name.rpartition(".")
        value = (table[family] if family else table).get(name)
        form[field.name] = "" if value is None else field.editor.write(value)
    return form


def read_texts(form: Form, families: Iterable[str], fields: Iterable[FormField]) -> dict[str, Any]:
    """Return the table of a specification: the kinds of families, and the fields that have a text.

    Raises:
        SpecError: a text cannot be read, or is too long.
    """
    for name, text in form.items():
        if len(text) > _MAX_LENGTH:
            raise SpecError(
                f"has {len(text)} characters, at most {_MAX_LENGTH} are read here; mesascope flow takes files",
                *name.split("."),
            )
    table: dict[str, Any] = {family: {"kind": form[f"{family}.kind"]} for family in families}
    for field in fields:
        text = field.text(form)
        if text.strip() or not field.optional:
            family, _, name = field.name.rpartition(".")
            with error_path(*field.name.split(".")):
                (table.setdefault(family, {}) if family else table)[name] = field.editor.read(text)
    return table


def form_of(spec: FlowSpec) -> Form:
    """Return the form of a setting."""
    table = spec.model_dump(mode="json", exclude_none=True)
    form = {f"{family}.kind": table[family]["kind"] for family in FAMILIES}
    form |= write_texts(table, visible(form))
    weights = table.get("weights")
    if isinstance(weights, list):
        weights = {str(t): weight for t, weight in enumerate(weights, start=2)}
    last = weights == {str(spec.horizon - 1): 1}
    form["objective"] = "every" if weights is None else "last" if last else "given"
    form["weights"] = ", ".join(f"{t}: {write_value(w)}" for t, w in (weights or {}).items() if not last)
    return form


def setting_of(form: Form) -> FlowSpec:
    """Return the setting of a form.

    Raises:
        SpecError: something is wrong in it; `field_of` says where to show that.
    """
    table = read_texts(form, FAMILIES, visible(form))
    if form["objective"] == "given":
        table["weights"] = _weights(form["weights"])
    elif form["objective"] == "last" and isinstance(table["horizon"], int):
        table["weights"] = {str(table["horizon"] - 1): 1}
    return read_setting(table)


def field_of(error: SpecError, form: Form) -> str:
    """Return the field of the form that shows an error."""
    return place_of(error, form, FAMILIES, visible(form))


def place_of(error: SpecError, form: Form, families: tuple[str, ...], fields: Iterable[FormField]) -> str:
    """Return the name of the field that an error is about; by default that of the first family."""
    names = [*form, *(field.name for field in fields)]
    for length in (2, 1):
        if (path := ".".join(map(str, error.path[:length]))) in names:
            return path
    family = str(error.path[0]) if error.path else ""
    if family not in families:
        return f"{families[0]}.kind"
    kind = f"{family}.kind"
    return next((field.name for field in kind_fields(family, form[kind])), kind)


def _weights(text: str) -> Any:
    """`2: 1, 5: 1/2` as a table; a list without colons as the weights of all context lengths."""
    if ":" not in text:
        return read_list(text)
    table: dict[str, Any] = {}
    for entry in text.replace("\n", ",").split(","):
        if not entry.strip():
            continue
        length, colon, weight = entry.partition(":")
        if not colon:
            raise SpecError(f"{entry.strip()!r} has no colon; write e.g. 2: 1, 5: 1/2", "weights")
        if length.strip() in table:
            raise SpecError(f"context length {length.strip()} is given twice; keep one", "weights")
        table[length.strip()] = read_number(weight)
    return table
