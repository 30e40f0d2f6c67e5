"""Errors of specifications: one line that says where, what is wrong, and how to fix it."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Self

from pydantic import ValidationError

from ._registry import FAMILIES

TOO_DEEP = "is nested too deeply to be read; flatten it"
"""What is said of tables that are nested beyond the limit of Python."""
_MAX_SHOWN = 60
_MAX_WORD = 400  # characters, more than paths that people use
_LONG_WORD = re.compile(rf"\S{{{_MAX_WORD + 1},}}")


class SpecError(ValueError):
    """A specification that cannot be used; its message is one line: file, field, what is wrong, the fix.

    A validator raises it with a path relative to the validated value.

    Attributes:
        what: what is wrong, and the fix.
        path: the field, outermost name first; positions in lists are numbers, e.g. `("law", "parts", 1, "scale")`.
        file: the file that was read, if any.
    """

    def __init__(self, what: str, *path: str | int, file: str | None = None) -> None:
        self.what, self.path, self.file = one_line(what), path, file
        places = [one_line(file)] if file else []
        if path:
            places.append(_show_path(path))
        super().__init__(": ".join([*places, self.what]))

    def __reduce__(self) -> Any:
        return _unpickled, (type(self), self.what, self.path, self.file)

    @property
    def place(self) -> str:
        """The field, as `law.parts[1].scale`; empty for the whole specification."""
        return _show_path(self.path)

    def within(self, *path: str | int, file: str | None = None) -> Self:
        """Return the error with `path` in front of its own path."""
        return type(self)(self.what, *path, *self.path, file=file or self.file)


class SpecTypeError(SpecError, TypeError):
    """A value of the wrong type in a specification; constructors raise a `TypeError` for it, else a `ValueError`."""


def _unpickled(cls: type[SpecError], what: str, path: tuple[str | int, ...], file: str | None) -> SpecError:
    return cls(what, *path, file=file)


@contextmanager
def error_path(*path: str | int, file: str | None = None) -> Iterator[None]:
    """Put `path` in front of the path of a `SpecError` of the block; another `ValueError` or `TypeError` becomes one there."""
    try:
        yield
    except SpecError as error:
        raise error.within(*path, file=file) from error
    except TypeError as error:
        raise SpecTypeError(str(error), *path, file=file) from error
    except OverflowError as error:
        raise SpecError("numbers exceed the range of floats; take smaller ones", *path, file=file) from error
    except ValueError as error:
        raise SpecError(str(error), *path, file=file) from error


def first_error(error: ValidationError) -> SpecError:
    """Return the first error that pydantic found."""
    first = error.errors(include_url=False)[0]
    if first["type"] in ("recursion_depth_exceeded", "recursion_loop"):
        return SpecError(TOO_DEEP, *first["loc"][:1])
    path = first["loc"]
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, SpecError):
        return raised.within(*path)
    if first["type"] == "missing" and path[-1] in FAMILIES:
        return SpecError(f"missing; add it; `mesascope kinds {path[-1]}` shows what it may be", *path)
    cls = SpecTypeError if first["type"].endswith("type") else SpecError
    return cls(str(raised) if raised else _text(first, first.get("ctx", {})), *path)


def _show_path(path: Sequence[str | int]) -> str:
    """Return `("law", "parts", 1, "scale")` as `law.parts[1].scale`."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{show_text(part)}" for part in path)
    return "".join(steps).removeprefix(".")


def _text(error: Any, context: Mapping[str, Any]) -> str:
    kind, given = error["type"], error["input"]
    match kind:
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
    near = nearest(given, known) if isinstance(given, str) else None
    fix = f"did you mean '{near}'?" if near else f"use {'one of ' * (len(known) > 1)}{', '.join(known)}"
    return f"unknown {what} {show(given)}; {fix}"


def nearest(given: object, known: Iterable[str], similarity: float = 0.5) -> str | None:
    """Return the known name that is most similar to a given one; None if none is similar."""
    near = get_close_matches(str(given), list(known), n=1, cutoff=similarity)
    return near[0] if near else None


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
    shown = escaped(text)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def one_line(text: str) -> str:
    """Return a text as `printable` does, with single blanks between its words."""
    return printable(" ".join(text.split()))


def printable(text: str, longest: int = sys.maxsize) -> str:
    """Return a text of a file, a request or another process as one line that is safe to print.

    Control characters are escaped; words of more than 400 characters are shortened in the middle, and the line to `longest`.
    """
    line = escaped(" ".join(text.splitlines()))
    return _shortened(_LONG_WORD.sub(lambda word: _shortened(word[0], _MAX_WORD), line), longest)


def _shortened(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def escaped(text: str) -> str:
    """Return a text with escapes for all characters that a terminal does not print."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def show_number(value: Any) -> str:
    """Return a number in its short form: `1.0` as `1`, a fraction as `1/3`, other floats as in Python."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
