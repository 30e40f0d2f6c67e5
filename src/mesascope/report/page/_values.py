"""Numbers and names of a record, for reading."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

_MANY = 8  # numbers of a list that are shown in its line


def named(name: str) -> str:
    """A name of a record in words: least_cosine_of_A becomes "least cosine of A"."""
    return name.replace("_", " ")


def brief(value: Any) -> Markup:
    """A value in one line; a number that is rounded is whole in its tooltip."""
    match value:
        case bool() | None:
            return Markup({True: "yes", False: "no", None: "–"}[value])
        case int() | float():
            shown, exact = number(value), repr(value)
            return (
                Markup(shown) if exact == shown else Markup('<span title="{}">{}</span>').format(exact, shown)
            )
        case list() | tuple() if len(value) <= _MANY:
            return Markup("[{}]").format(_joined(", ", value)) if value else Markup("none")
        case list() | tuple():
            return Markup("[{}] ({})").format(_joined(", ", [*value[:2], "…", value[-1]]), len(value))
        case Mapping():
            parts = (Markup("{}: {}").format(named(str(key)), brief(one)) for key, one in value.items())
            return _joined("; ", parts)
    return escape(value)


def _joined(separator: str, values: Any) -> Markup:
    return Markup(separator).join(map(brief, values))


def number(value: float) -> str:
    """A number to six digits, with a true minus sign and powers of ten."""
    shown = str(value) if type(value) is int else f"{value:.6g}"
    if "e" in shown:
        digits, power = shown.split("e")
        shown = f"{'' if digits == '1' else f'{digits}·'}10{_superscript(int(power))}"
    return shown.replace("-", "−")


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of all fields of the rows of a table."""
    return list(dict.fromkeys(name for row in rows for name in row))
