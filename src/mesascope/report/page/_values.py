"""Numbers, lists and tables of a record, for reading."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ._html import Markup, join, tag

_MANY = 8  # numbers of a list that are shown in its line
_ROWS = 200  # of a table that a record becomes


def named(name: str) -> str:
    """A name of a record in words: least_cosine_of_A becomes "least cosine of A"."""
    return name.replace("_", " ")


def brief(value: Any) -> Markup:
    """A value in one line; a value that is cut is whole in its tooltip."""
    match value:
        case bool() | None:
            return Markup({True: "yes", False: "no", None: "–"}[value])
        case int() | float():
            shown = number(value)
            exact = repr(value)
            return tag("span", shown, title=exact) if exact != shown else Markup(shown)
        case str():
            return join(value)
        case list() | tuple() if len(value) <= _MANY:
            return join("[", *_between(", ", [brief(one) for one in value]), "]") if value else Markup("none")
        case list() | tuple():
            ends = [brief(value[0]), brief(value[1]), "…", brief(value[-1])]
            return join("[", *_between(", ", ends), f"] ({len(value)})")
        case Mapping():
            return join(
                *_between("; ", [join(named(str(key)), ": ", brief(one)) for key, one in value.items()])
            )
    return join(value)


def number(value: float) -> str:
    """A number to six digits, with a true minus sign and powers of ten."""
    shown = str(value) if type(value) is int else f"{value:.6g}"
    if "e" in shown:
        digits, power = shown.split("e")
        shown = f"{'' if digits == '1' else f'{digits}·'}10{_superscript(int(power))}"
    return shown.replace("-", "−")


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _between(separator: str, parts: Sequence[object]) -> list[object]:
    return [one for part in parts for one in (separator, part)][1:]


def listing(values: Mapping[str, Any]) -> Markup:
    """All values of a record: a description list, with tables where entries have the same fields."""
    return tag(
        "dl", *(join(tag("dt", named(name)), tag("dd", whole(value))) for name, value in values.items())
    )


def whole(value: Any) -> Markup:
    """A value in full, except rows beyond the two hundredth."""
    if isinstance(value, str) and "\n" in value:
        return tag("pre", value, tabindex=0)
    if isinstance(value, Mapping):
        return listing(value) if value else Markup("none")
    if isinstance(value, list | tuple) and value:
        if all(isinstance(one, Mapping) for one in value):
            return _table(value)
        if any(isinstance(one, list | tuple | Mapping) for one in value):
            return tag("ol", *(tag("li", whole(one)) for one in value[:_ROWS]), _cut(value))
        return join(*_between(", ", [brief(one) for one in value[:_ROWS]]), _cut(value))
    return brief(value)


def _table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = tag("tr", *(tag("th", named(name), scope="col") for name in columns))
    body = [
        tag("tr", *(tag("td", brief(row[name]) if name in row else "") for name in columns))
        for row in rows[:_ROWS]
    ]
    return join(scrolled(tag("table", tag("thead", head), tag("tbody", *body))), _cut(rows))


def _cut(values: Sequence[Any]) -> Markup | None:
    return tag("p", f"… {len(values) - _ROWS} more in the record") if len(values) > _ROWS else None


def scrolled(table: Markup) -> Markup:
    """A table that scrolls on narrow pages, also by keyboard."""
    return tag("div", table, class_="scrolled", tabindex=0, role="group", aria_label="table")


def specification(spec: Mapping[str, Any]) -> Markup:
    """A specification as JSON, to be copied into a file."""
    return tag("pre", json.dumps(spec, indent=1, ensure_ascii=False), tabindex=0)


def folded(title: object, *content: object) -> Markup:
    """Content that is shown when its title is clicked."""
    return tag("details", tag("summary", title), *content)
