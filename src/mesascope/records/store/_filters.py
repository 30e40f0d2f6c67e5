"""Filters of runs, such as `status=done`, `study=NAME`, `spec.init.a<0.1`, as SQL."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlalchemy import (
    ColumnElement,
    String,
    Text,
    and_,
    cast,
    collate,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
)
from sqlalchemy import text as sql_text
from sqlalchemy.dialects.postgresql import ARRAY, NUMERIC

from mesascope.records._files import RecordError
from mesascope.records._plain import parse_json
from mesascope.specs import nearest

from ._schema import POINTS, RUNS

_FORM = re.compile(r"\s*(?P<name>[^=!<>\s]+)\s*(?P<sign>!=|<=|>=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
STATUSES = ("planned", "running", "done", "failed", "unreadable")
_SEARCHED = {"spec": RUNS.c.spec, "outcome": RUNS.c.brief}
_PLANNED = ("kind", "code", "id", "study", "spec")
_TEXTS = ("kind", "code", "error", "started", "ended")
_NUMBERS = ("seconds", "attempts")
_MAX_PLACES = 8  # parts of a path that may be names or indices: each doubles the conditions for SQLite
_FIELDS = ("status", "study", "id", *_TEXTS, *_NUMBERS, "spec.PATH", "outcome.PATH")


@dataclass(frozen=True)
class Filter:
    """One condition: `name` `sign` `value`, and the text that it was read from."""

    name: str
    sign: str
    value: Any
    written: str


def read_filters(texts: Sequence[str]) -> list[Filter]:
    """Read conditions, all of which are to hold.

    Raises:
        RecordError: one of them cannot be read; says how it is written.
    """
    return [_read(text) for text in texts]


def of_plans(texts: Sequence[str]) -> list[str]:
    """The conditions that the plan of a run decides, whatever its record says."""
    return [one.written for one in read_filters(texts) if one.name.partition(".")[0] in _PLANNED]


def _read(text: str) -> Filter:
    match = _FORM.fullmatch(text)
    if match is None:
        raise RecordError(f"filter {text!r}: write NAME=VALUE, or !=, <, <=, >, >= between them")
    name, sign, value = match["name"], match["sign"], match["value"]
    head, _, path = name.partition(".")
    known = (head in ("spec", "outcome") and path) or name in _FIELDS[:-2]
    if not known or '"' in name or "\0" in text or not all(name.split(".")):
        near = "status" if name == "state" else nearest(name, _FIELDS[:-2])
        meant = f"; did you mean '{near}'?" if near else ""
        raise RecordError(f"filter {text!r}: filter by one of {', '.join(_FIELDS)}{meant}")
    if sum(part.isdecimal() for part in path.split(".")) > _MAX_PLACES:
        raise RecordError(f"filter {text!r}: at most {_MAX_PLACES} parts of a path may be numbers")
    if name == "status" and value not in STATUSES:
        raise RecordError(f"filter {text!r}: a status is one of {', '.join(STATUSES)}")
    if name in ("status", "study", "id") and sign not in ("=", "!="):
        raise RecordError(f"filter {text!r}: only = and != make sense for {name}")
    if name == "id" and not re.fullmatch("[0-9a-f]{1,32}", value):
        raise RecordError(f"filter {text!r}: an id, or how it begins, is made of hexadecimal digits")
    return Filter(name, sign, _value(name, value, text), text)


def _value(name: str, value: str, text: str) -> Any:
    """The value, read as JSON if possible, otherwise as text; for a field with one type, in that type."""
    if name in ("status", "study", "id", *_TEXTS):
        return value
    try:
        read = parse_json(value, parse_constant=lambda name: name)
    except ValueError:
        read = value
    if name in _NUMBERS and not _is_number(read):
        raise RecordError(f"filter {text!r}: {name} is compared with a number")
    if isinstance(read, list | dict):
        raise RecordError(f"filter {text!r}: compare with a number, a text, true, false or null")
    return read


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def condition(one: Filter, dialect: str) -> ColumnElement[bool]:
    """The condition as SQL. `!=` holds wherever `=` does not, also where there is nothing to compare."""
    if one.sign == "!=":
        return not_(condition(Filter(one.name, "=", one.value, one.written), dialect))
    if one.name == "status":
        return RUNS.c.status == ("planned" if one.value == "running" else one.value)
    if one.name == "study":
        return exists(select(POINTS.c.run).where(POINTS.c.run == RUNS.c.id, POINTS.c.study == one.value))
    if one.name == "id":
        return RUNS.c.id.startswith(one.value)
    compare = _SIGNS[one.sign]
    if one.name in (*_TEXTS, *_NUMBERS):
        column = RUNS.c[one.name]
        return func.coalesce(compare(column, _bindable(one.value)), false())
    head, *path = one.name.split(".")
    build = _postgresql if dialect == "postgresql" else _sqlite
    return func.coalesce(build(head, path, compare, one.value), false())


def has_field(name: str, dialect: str) -> ColumnElement[bool]:
    """Whether a run has something at a path `spec.PATH` or `outcome.PATH`, as SQL."""
    head, *path = name.split(".")
    column = _SEARCHED[head]
    if dialect == "postgresql":
        return func.jsonb_typeof(column.op("#>")(_steps(path))).is_not(None)
    return or_(*(func.json_type(column, at).is_not(None) for at in _places(path)))


def _bindable(value: Any) -> Any:
    """A value that databases take: integers have at most 64 bits."""
    if not _is_number(value) or abs(value) < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _sqlite(
    head: str, path: list[str], compare: Callable[[Any, Any], Any], value: Any
) -> ColumnElement[bool]:
    column = _SEARCHED[head]
    each = []
    for at in _places(path):
        found, kind = func.json_extract(column, at), func.json_type(column, at)
        if isinstance(value, bool) or value is None:
            each.append(and_(kind == json.dumps(value), compare(literal(0), literal(0))))
        elif _is_number(value):
            each.append(and_(kind.in_(("integer", "real")), compare(found, _bindable(value))))
        else:
            each.append(and_(kind == "text", compare(found, value)))
    return or_(*(func.coalesce(one, false()) for one in each))


def _places(path: list[str]) -> list[str]:
    """A path as SQLite writes it; a part of digits may be an index of a list or a name: '$."weights"[3]', '$."weights"."3"'."""
    parts = [[f'."{part}"', f"[{part}]"] if part.isdecimal() else [f'."{part}"'] for part in path]
    return ["$" + "".join(steps) for steps in product(*parts)]


def _postgresql(
    head: str, path: list[str], compare: Callable[[Any, Any], Any], value: Any
) -> ColumnElement[bool]:
    column, kind_of = _SEARCHED[head], func.jsonb_typeof
    steps = _steps(path)
    there, found = column.op("#>")(steps), column.op("#>>", return_type=Text())(steps)
    if isinstance(value, bool):
        matches = and_(found == json.dumps(value), compare(literal(0), literal(0)))
        return _when(kind_of(there) == "boolean", matches)
    if value is None:
        return and_(kind_of(there) == "null", compare(literal(0), literal(0)))
    if _is_number(value):
        # decimal, so that 0.1 equals 0.1 whatever its binary digits
        number = cast(literal(repr(value), String), NUMERIC)
        return _when(kind_of(there) == "number", compare(cast(found, NUMERIC), number))
    return _when(kind_of(there) == "string", compare(collate(found, "C"), value))


def _steps(path: list[str]) -> ColumnElement[Any]:
    """A path as PostgreSQL writes it."""
    return cast(literal(path, ARRAY(String)), ARRAY(String))


def _when(applies: ColumnElement[bool], matches: ColumnElement[bool]) -> ColumnElement[bool]:
    """Evaluate `matches` only where it applies: a text cannot be cast to a number."""
    from sqlalchemy import case

    return case((applies, matches), else_=sql_text("false"))
