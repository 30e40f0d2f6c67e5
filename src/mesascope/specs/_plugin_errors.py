"""Errors that code from outside this package raises, in one line: what declares the kind, its file and line, its method."""

import inspect
import os
from collections.abc import Iterator
from traceback import walk_tb
from types import FrameType
from typing import Any

from ._errors import one_line
from ._registry import FAMILIES, is_ours

_PACKAGE = __name__.partition(".")[0]


def plugin_error(error: BaseException) -> str | None:
    """Return what code of a plugin raised, in one line with its kind, method, file and line.

    None for other errors, and for errors of a plugin that are meant for the user: those whose class is of this package,
    and each `ValueError` that this package raised when the plugin called it.
    """
    outside = {cls.__module__.partition(".")[0] for _, _, cls in _kinds() if not is_ours(cls)} - {"__main__"}
    for one in _chain(error):
        frames = [frame for frame, _ in walk_tb(one.__traceback__)]
        tops = [frame.f_globals.get("__name__", "").partition(".")[0] for frame in frames]
        last = max((i for i, top in enumerate(tops) if top in outside), default=None)
        if last is None:
            continue
        meant = type(one).__module__.partition(".")[0] == _PACKAGE
        if meant or (isinstance(one, ValueError) and _PACKAGE in tops[last:]):
            return None
        who, method = _kind_and_method(
            [frame for frame, top in zip(frames, tops, strict=True) if top in outside]
        )
        place = f"{frames[last].f_code.co_filename}:{_line(one, frames[last])}"
        if isinstance(one, SystemExit):
            return f"{who} ends the program in {method}, {place}; remove its call of exit"
        text = message_of(one)
        return (
            f"{who} raised {type(one).__name__} in {method}, {place}{': ' * bool(text)}{text}; fix it there"
        )
    return None


def described(error: BaseException) -> str:
    """Return the class and the message of an error in one line."""
    return f"{one_line(type(error).__name__)}: {message_of(error)}"


def message_of(error: BaseException) -> str:
    """Return the message of an error in one line; of one whose message cannot be made, a text that says so."""
    try:
        return one_line(str(error))
    except (Exception, SystemExit) as other:
        return f"its message cannot be made ({type(other).__name__})"


def raised_in(file: str, error: BaseException) -> str:
    """Return the file and the line in it that raised an error, `file:line`; the file if none of its lines did."""
    path = os.path.abspath(file)
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{file}:{error.lineno}"
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    return f"{file}:{lines[-1]}" if lines else file


def declared_at(cls: type[Any]) -> str:
    """Return the file and line of the class of a kind, or of the function that it is made of."""
    try:
        source = inspect.unwrap(getattr(cls, "function", cls))
        return f"{inspect.getsourcefile(source)}:{inspect.getsourcelines(source)[1]}"
    except (OSError, TypeError):  # declared in an interactive session
        return cls.__qualname__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, the last one first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        yield one
        seen.add(id(one))
        one = one.__cause__ or one.__context__


def _kinds() -> Iterator[tuple[str, str, type[Any]]]:
    return ((family, name, cls) for family, kinds in FAMILIES.items() for name, cls in kinds.items())


def _kind_and_method(frames: list[FrameType]) -> tuple[str, str]:
    """The kind whose method is the innermost of these frames that belongs to one, and the method."""
    for frame in reversed(frames):
        given = frame.f_locals.get("self", frame.f_locals.get("cls"))
        cls = given if isinstance(given, type) else type(given)
        for base in cls.__mro__:
            for family, name, known in _kinds():
                maker = getattr(known, "function", known)  # of a layer: a method of its class
                if base is getattr(maker, "__self__", maker):
                    return f"the {family} '{name}'", frame.f_code.co_name
    return "a plugin", frames[-1].f_code.co_name


def _line(error: BaseException, frame: FrameType) -> int:
    return next(line for one, line in walk_tb(error.__traceback__) if one is frame)
