"""How a field is edited: what its type says about its text and the means to enter it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from mesascope.processes import LawField, Parts, SamplesField
from mesascope.specs import (
    Dim,
    Horizon,
    Matrix,
    Nonnegative,
    Numbers,
    Positive,
    Real,
    Scale,
    Token,
    error_path,
)
from mesascope.studies import SpecError

from ._setting import read_value

Slider = tuple[float, float, float]
"""Lowest and highest value, and step."""


def read_number(text: str) -> Any:
    """A number or a list as JSON writes it; a fraction or a word as it stands."""
    return read_value(text.strip().replace("−", "-"))


def write_value(value: Any) -> str:
    """A value as JSON; a text as it stands."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Editor(NamedTuple):
    """How values of one type, as specification files have them, become texts and back."""

    read: Callable[[str], Any] = read_number  # may raise `SpecError`
    write: Callable[[Any], str] = write_value
    hint: str = ""  # how to write it
    lines: bool = False  # whether texts have several lines
    slider: Callable[[Any], Slider | None] = lambda example: None  # its range
    options: Mapping[str, str] | None = None  # the only texts, with their labels


def editor_of(annotation: Any) -> Editor | None:
    """Return how fields of a type are edited: those that the table does not have, as JSON; None for names of files."""
    optional = NoneType in get_args(annotation)
    if optional:
        annotation = Union[*(one for one in get_args(annotation) if one is not NoneType)]
    for known, editor in _EDITORS:
        if annotation == known:
            return editor
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if Path in (base, *get_args(base)):
        return None
    if base is bool:
        return Editor(options={"false": "no", "true": "yes"})
    if get_origin(base) is Literal:
        names = {name: str(name) for name in map(write_value, get_args(base))}
        return Editor(options={"": "not set", **names} if optional else names)
    return Editor()


# Texts of single types


def read_list(text: str) -> Any:
    """Numbers between commas or blanks."""
    return [read_number(one) for one in text.replace(",", " ").split()]


def _write_list(numbers: Any) -> str:
    return ", ".join(map(write_value, numbers))


def _read_token(text: str) -> Any:
    """One number, or a list of them."""
    given = read_list(text.strip().removeprefix("[").removesuffix("]"))
    return given[0] if len(given) == 1 and "[" not in text else given


def _read_rows(text: str) -> Any:
    return [read_list(line) for line in text.splitlines() if line.strip()]


def _write_rows(rows: Any) -> str:
    return "\n".join(map(_write_list, rows if isinstance(rows[0], list) else [rows]))


def _read_samples(text: str) -> Any:
    rows = _read_rows(text)
    return rows[0] if len(rows) == 1 else rows


def _read_parts(text: str) -> list[dict[str, Any]]:
    """Lines such as `0.5 gaussian scale=1`, or with the law as a JSON table."""
    parts = []
    for number, line in enumerate(filter(str.strip, text.splitlines())):
        probability, _, rest = line.strip().partition(" ")
        with error_path(number):
            parts.append({"probability": read_number(probability), "law": _read_law(rest)})
    return parts


def _read_law(text: str) -> Any:
    """`gaussian scale=1`, or a JSON table."""
    if text.strip().startswith("{"):
        return read_value(text.strip())
    kind, *given = text.split() or [""]
    law = {"kind": kind}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise SpecError(f"{one!r} is not a parameter; write e.g. gaussian scale=1")
        law[name] = read_number(value)
    return law


def _write_parts(parts: Any) -> str:
    return "\n".join(f"{write_value(part['probability'])} {_write_law(part['law'])}" for part in parts)


def _write_law(law: Mapping[str, Any]) -> str:
    parameters = {name: value for name, value in law.items() if name != "kind"}
    if any(isinstance(value, list | Mapping | bool) for value in parameters.values()):
        return json.dumps(law)
    return " ".join([law["kind"], *(f"{name}={write_value(value)}" for name, value in parameters.items())])


def _around(example: Any) -> Slider | None:
    """From a tenth of a positive number to three times as much."""
    value = float(example) if isinstance(example, int | float) else 0.0
    low, high, step = (float(f"{part * value:.6g}") for part in (0.1, 3, 0.05))
    return (low, high, step) if value > 0 else None


_EDITORS: list[tuple[Any, Editor]] = [
    (Real, Editor(slider=lambda example: (-3, 3, 0.02))),
    *((positive, Editor(slider=_around)) for positive in (Positive, Nonnegative, Scale)),
    (Dim, Editor(slider=lambda example: (1, 10, 1))),
    (Horizon, Editor(slider=lambda example: (3, 200, 1))),
    (Numbers, Editor(read_list, _write_list, "numbers between commas")),
    (Token, Editor(_read_token, write_value, "one number, or one for every coordinate")),
    (Matrix, Editor(_read_rows, _write_rows, "one row a line", lines=True)),
    (SamplesField, Editor(_read_samples, _write_rows, "numbers, or one token a line", lines=True)),
    (LawField, Editor(_read_law, _write_law, "a law and its parameters, e.g. gaussian scale=1")),
    (Parts, Editor(_read_parts, _write_parts, "one part a line: probability, law, parameters", lines=True)),
]
