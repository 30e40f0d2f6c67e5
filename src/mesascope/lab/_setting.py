"""A setting of the lab is a specification of a flow: the same in an address, in a file, and in Python."""

import json
from collections.abc import Mapping
from pprint import pformat
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl, urlencode

from mesascope.specs import Matrix, Nonnegative, Positive, Real, Scale, Spec, default_plugins
from mesascope.studies import FlowSpec, SpecError, parse_spec

MAX_DIM = 24
"""Heat maps of larger ones cannot be read, and their frames fill the memory of a page."""
MAX_HORIZON = 10**6
MAX_START = 1e6
"""Largest weight that training starts from: the loss has fourth powers of weights, and the flow squares its gradients."""
MAX_QUERY = 20_000
"""Characters of an address."""
_MAX_FIELDS = 1000
_DEEPEST = 20  # tables in tables that an address may name: settings have three
_AnySpec = TypeVar("_AnySpec", bound=Spec)
_WEIGHTS = (Real, Positive, Nonnegative, Scale, Matrix)
"""Types of fields of a start that are weights, or their size."""

DEFAULT: dict[str, Any] = {
    "dim": 5,
    "horizon": 100,
    "law": {"kind": "gaussian", "scale": 1.0},
    "init": {"kind": "diagonal", "a": 0.1, "b": 0.1},
}
"""What the page opens with: figure 1a of zheng2024."""


def read_setting(table: Mapping[str, Any]) -> FlowSpec:
    """Return the setting of a table, as SPEC files have it, without reading files that it names.

    Raises:
        SpecError: no specification of a flow, or one that a page cannot show; with the field.
    """
    return check_setting(read_sent(table, FlowSpec))


def read_sent(table: Mapping[str, Any], cls: type[_AnySpec]) -> _AnySpec:
    """Return the specification of a table that a browser sent: files that it names are not read.

    Raises:
        SpecError: it is not a specification, or names a file; with the field.
    """
    if (place := _named_file(table)) is not None:
        raise SpecError("files are not read here, give the samples themselves", *place)
    plugins, loaded = table.get("plugins", []), [str(file) for file in default_plugins()]
    if not isinstance(plugins, list) or any(file not in loaded for file in plugins):
        raise SpecError("are not loaded here; open the page by mesascope lab --plugin FILE", "plugins")
    return parse_spec(dict(table), cls)


def check_setting(spec: FlowSpec) -> FlowSpec:
    """Return a specification that the page can show.

    Raises:
        SpecError: it cannot; with the field.
    """
    for name, most in (("dim", MAX_DIM), ("horizon", MAX_HORIZON)):
        if (given := getattr(spec, name)) > most:
            what = f"must be at most {most} here, got {given}; mesascope flow takes larger ones"
            raise SpecError(what, name)
    if spec.method != "flow":
        what = "the lab follows the gradient flow; mesascope flow takes steps of descent"
        raise SpecError(what, "method")
    if spec.engine.kind != "exact-moments":
        raise SpecError("the lab computes exactly; leave it out", "engine")
    for name, type_ in get_type_hints(type(spec.init), include_extras=True).items():
        if type_ in _WEIGHTS and (size := _largest(getattr(spec.init, name))) > MAX_START:
            raise SpecError(f"must be at most {MAX_START:g} in size here, got {size:.8g}", "init", name)
    return spec


def _largest(value: Any) -> float:
    return max(map(_largest, value)) if isinstance(value, tuple) else abs(float(value))


def _named_file(table: Any) -> tuple[str | int, ...] | None:
    """The path of the field that names a file, such as (law, file): an address that was sent may not."""
    if isinstance(table, Mapping) and table.get("file") is not None:
        return ("file",)
    parts = (
        table.items()
        if isinstance(table, Mapping)
        else enumerate(table)
        if isinstance(table, list | tuple)
        else ()
    )
    found = ((name, _named_file(part)) for name, part in parts)
    return next(((name, *place) for name, place in found if place is not None), None)


def plain_setting(spec: Spec) -> dict[str, Any]:
    """Return the fields that were chosen, as a SPEC file writes them."""
    fields = spec.model_dump(mode="json", exclude_none=True)
    defaults = {name: field.default for name, field in type(spec).model_fields.items()} | {"plugins": ()}
    return {name: value for name, value in fields.items() if getattr(spec, name) != defaults[name]}


# Addresses


def to_query(spec: Spec) -> str:
    """Return the part of an address after `?`: `dim=5&horizon=100&law.kind=gaussian&law.scale=1.0…`."""
    pairs = _flat({name: value for name, value in plain_setting(spec).items() if name != "plugins"}, "")
    return urlencode(
        [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in pairs]
    )


def from_query(query: str) -> FlowSpec:
    """Return the setting of an address; of an empty one the default.

    Raises:
        SpecError: as for `read_setting` and `table_of_query`, or the address has a part of a setting.
    """
    data = table_of_query(query)
    if not data:
        return read_setting(DEFAULT)
    _require_all(data)
    return read_setting(data)


def table_of_query(query: str) -> dict[str, Any]:
    """Return the fields of an address as a table.

    Raises:
        SpecError: it is too long, or fields contradict each other.
    """
    if len(query) > MAX_QUERY:
        raise SpecError(f"the address is longer than {MAX_QUERY} characters; open a SPEC file instead")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise SpecError(f"the address has more than {_MAX_FIELDS} fields; open a SPEC file instead") from None
    data: dict[str, Any] = {}
    for name, text in pairs:
        *tables, last = name.split(".")
        if len(tables) > _DEEPEST:
            raise SpecError(
                f"the address has a field in more than {_DEEPEST} tables; open a SPEC file instead"
            )
        table = data
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise SpecError("is given both as a value and as a table; keep one", *tables)
        if last in table:
            raise SpecError("is given twice; keep one", *tables, last)
        table[last] = read_value(text)
    return data


def _require_all(data: Mapping[str, Any]) -> None:
    """Refuse an address that was cut: no default is taken for what it lacks."""
    fields = FlowSpec.model_fields.items()
    lacking = [name for name, field in fields if field.is_required() and name not in data]
    if lacking:
        whole = to_query(read_setting(DEFAULT))
        raise SpecError(
            f"the address lacks {', '.join(lacking)}; it must contain the whole setting, such as ?{whole}"
        )


def read_value(text: str) -> Any:
    """Return a number, list or table as JSON writes it; of everything else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in table.items():
        pairs += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(prefix + name, value)]
    return pairs


# Files


def to_toml(spec: Spec, command: str = "flow") -> str:
    """Return a specification as a file for a command of mesascope."""
    lines = (f"{name} = {_toml(value)}" for name, value in plain_setting(spec).items())
    return "\n".join([f"# mesascope {command} FILE", *lines, ""])


def _toml(value: Any) -> str:
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


# Python


def to_python(
    spec: FlowSpec,
    train: dict[str, Any] | None = None,
    identify: dict[str, Any] | None = None,
    frame: int | None = None,
) -> str:
    """Return a program that reproduces what the page shows: its numbers, its sentences, and its figures as files.

    Args:
        spec: the setting.
        train: the descent on samples that the page shows, as `view` takes it.
        identify: the identification that the page shows, likewise.
        frame: the frame of the flow whose layer the page shows, if that is not its end.
    """
    fields = pformat(plain_setting(spec), width=96, sort_dicts=False)
    more = "".join(
        f"\n    {name}={pformat(value, width=84, sort_dicts=False)},"
        for name, value in (("train", train), ("identify", identify), ("frame", frame))
        if value is not None
    )
    shown = f"view(\n    spec,{more}\n)" if more else "view(spec)"
    answer = '\nprint("it runs", shown.answer["candidates"], shown.answer["verdict"])' if identify else ""
    return f"""\
from mesascope.core import enable_x64
from mesascope.lab import view
from mesascope.report import render, write_csv
from mesascope.studies import FlowSpec

enable_x64()

fields = {fields}
spec = FlowSpec.model_validate(fields)  # spec.build() gives model, process and task

shown = {shown}
end = shown.flow["end"]  # where training goes
print(end["message"])
print("a_j b_j at the end:", end["product"])
print("theory:", end["limit_product"], "-", end["limit_reason"])
print(*shown.words, sep="\\n"){answer}

for name, figure in shown.figures.items():
    render(figure, f"view/{{name}}")  # PDF and PNG
    write_csv(figure, f"view/{{name}}.csv")
"""
