"""Errors of specifications: one line that says where, what is wrong, and how to fix it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

TOO_DEEP = "is nested too deeply to be read; flatten it"
"""What is said of tables that are nested beyond the limit of Python."""
_MAX_SHOWN = 60


class SpecError(ValueError):
    """A specification that cannot be used; its message is one line: file, field, what is wrong, the fix.

    Attributes:
        what: what is wrong, and the fix.
        path: the field, outermost name first; positions in lists are numbers, e.g. `("law", "parts", 1, "scale")`.
        file: the file that was read, if any.
    """

    def __init__(self, what: str, path: Sequence[str | int] = (), file: str | None = None) -> None:
        self.what, self.path, self.file = one_line(what), tuple(path), file
        places = [one_line(file)] if file else []
        if path:
            places.append(_show_path(path))
        super().__init__(": ".join([*places, self.what]))

    @property
    def place(self) -> str:
        """The field, as `law.parts[1].scale`; empty for the whole specification."""
        return _show_path(self.path)


@contextmanager
def at(*path: str | int, file: str | None = None) -> Iterator[None]:
    """Add the place to errors: a `ValueError` or `TypeError` of the block becomes a `SpecError` at `path`.

    The path of a `SpecError` of the block is relative; `path` is put in front of it.
    """
    try:
        yield
    except SpecError as error:
        raise SpecError(error.what, (*path, *error.path), file or error.file) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise SpecError(str(error), path, file) from error


def wrong(what: str, *path: str | int) -> PydanticCustomError:
    """Return the error that a validator raises: `what` is wrong at `path`, relative to the validated value."""
    return PydanticCustomError("mesascope", "{what}", {"what": what, "path": list(path)})


def wrong_type(what: str, *path: str | int) -> PydanticCustomError:
    """Return the same as `wrong` for a value of the wrong type: a constructor raises `TypeError` for it."""
    return PydanticCustomError("mesascope_type", "{what}", {"what": what, "path": list(path)})


def first_error(error: ValidationError, data: Any) -> SpecError:
    """Return the first error that pydantic found in `data` as a `SpecError`."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    if first["type"] in ("recursion_depth_exceeded", "recursion_loop"):
        return SpecError(TOO_DEEP, first["loc"][:1])
    return SpecError(_text(first, context), [*_without_tags(first["loc"], data), *context.get("path", ())])


def of_type(error: ValidationError) -> bool:
    """Return whether the first error that pydantic found is a wrong type."""
    return str(error.errors(include_url=False)[0]["type"]).endswith("type")


def nested(error: ValidationError, data: Any) -> PydanticCustomError:
    """Return the first error that pydantic found in a part of a specification, as the part's validator raises it."""
    first = first_error(error, data)
    return (wrong_type if of_type(error) else wrong)(first.what, *first.path)


def _without_tags(location: Sequence[str | int], data: Any) -> list[str | int]:
    """Remove the `kind`s that pydantic adds to the location of an error in a discriminated union."""
    path: list[str | int] = []
    tagged = False
    for part in location:
        if not tagged and (data == part or (isinstance(data, Mapping) and data.get("kind") == part)):
            tagged = True
            continue
        tagged = False
        path.append(part)
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            data = None
    return path


def _show_path(path: Sequence[str | int]) -> str:
    """Return `("law", "parts", 1, "scale")` as `law.parts[1].scale`."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{show_text(part)}" for part in path)
    return "".join(steps).removeprefix(".")


def _text(error: Any, context: Mapping[str, Any]) -> str:
    kind, given = error["type"], error["input"]
    match kind:
        case "mesascope" | "mesascope_type":
            return str(context["what"])
        case "missing":
            return "missing; add it"
        case "literal_error":
            return unknown("value", given, _names(context["expected"]))
        case "int_type":
            return f"must be an integer, got {show(given)}"
        case "bool_type":
            return f"must be true or false, got {show(given)}"
        case "string_type":
            return f"must be a string, got {show(given)}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, got {show(given)}"
        case "less_than_equal":
            return f"must be at most {context['le']}, got {show(given)}"
        case "tuple_type":
            return f"must be a list, got {show(given)}"
        case "too_short":
            return f"must have at least {context['min_length']} entries, got {context['actual_length']}"
        case _:
            return f"{error['msg']}, got {show(given)}"


def _names(listed: str) -> list[str]:
    return re.findall(r"'([^']+)'", listed)


def unknown(what: str, given: object, known: Sequence[str]) -> str:
    """Return the message for an unknown name, with the most similar known name, or all of them."""
    near = get_close_matches(str(given), known, n=1, cutoff=0.5)
    fix = f"did you mean '{near[0]}'?" if near else f"use {'one of ' * (len(known) > 1)}{', '.join(known)}"
    return f"unknown {what} {show(given)}; {fix}"


def show(value: object) -> str:
    """Return a value as messages show it: long texts are cut, tables and lists are only described."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    try:
        return show_text(repr(value))
    except ValueError:  # an integer beyond Python's limit on digits
        return "a number of thousands of digits"


def show_text(text: str) -> str:
    """Return a text in printable characters, cut if it is long."""
    printable = _printable(text)
    return printable if len(printable) <= _MAX_SHOWN else f"{printable[:_MAX_SHOWN]}…"


def one_line(text: str) -> str:
    """Return a text on one line, in printable characters."""
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def show_number(value: Any) -> str:
    """Return a number in its short form: `1.0` as `1`, a fraction as `1/3`, other floats as in Python."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
