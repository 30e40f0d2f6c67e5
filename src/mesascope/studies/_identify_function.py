"""Functions and models of the user, found by name; their failures become errors of one line."""

import inspect
import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.specs import SpecError, message_of, one_line

if TYPE_CHECKING:
    from mesascope.probes import Interface

_PACKAGE = Path(__file__).parents[1]


def named_model(name: str, interface: "Interface | None" = None) -> Any:
    """Return the model that `package.module:attribute` names: a model of mesascope as it is, any other as a `NamedFunction`.

    Args:
        name: of the model.
        interface: how it is called, as for `as_callable`.

    Raises:
        SpecError: there is no such object, a package that it needs is not installed, its module raises an exception when it
            is imported, or the object is a class or a function that makes models.
    """
    from mesascope.models import LinearAttentionModel, PromptModel, SequenceModel
    from mesascope.probes import EveryPosition, as_callable

    found = _imported(name)
    if isinstance(found, LinearAttentionModel | SequenceModel | PromptModel):
        return found
    _refuse_makers(name, found)
    try:
        function = as_callable(found, interface=interface)
    except TypeError as error:
        raise SpecError(_without_name(error)) from None
    if isinstance(function, EveryPosition):
        return replace(function, function=NamedFunction(name, function.function))
    return NamedFunction(name, function)


class NamedFunction:
    """A function of contexts, as `as_callable` returns it; its exceptions become a `ValueError` of one line.

    Attributes:
        name: `package.module:attribute`.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self._function = name, function

    def __call__(self, *arrays: Any) -> Any:
        """The predictions.

        Raises:
            ValueError: the function raised an exception; names it and its line.
        """
        process = os.getpid()
        try:
            return self._function(*arrays)
        except MemoryError:
            raise
        except BaseException as error:
            if not _is_its_own(error, self.name):
                raise
            raise ValueError(f"model: {_describe(self.name, error)}") from error
        finally:
            if os.getpid() != process:  # a copy by `os.fork` would go on beside the process itself
                os._exit(1)


def _imported(name: str) -> Any:
    from mesascope.probes import import_callable

    try:
        return import_callable(name)
    except ModuleNotFoundError as error:
        raise SpecError(_without_name(error)) from None
    except ValueError as error:
        if traceback.extract_tb(error.__traceback__)[-1].name == import_callable.__name__:
            raise SpecError(_without_name(error)) from None
        raise SpecError(_describe(name, error)) from error
    except BaseException as error:
        if not _is_its_own(error, name):
            raise
        raise SpecError(_describe(name, error)) from error


def _is_its_own(error: BaseException, name: str) -> bool:
    """Whether the code of the user raised it, and not whoever stops the program."""
    declared = type(error).__module__ == name.partition(":")[0]
    return isinstance(error, Exception | SystemExit | GeneratorExit) or declared


def _refuse_makers(name: str, found: Any) -> None:
    """Refuse classes and functions without arguments: they make models, and the user means a model."""
    module, _, attribute = name.partition(":")
    fix = f"write model = {attribute}(…) in {module}, and name {module}:model"
    if isinstance(found, type):
        raise SpecError(f"{name} is a class, not a model; {fix}")
    if callable(found) and _takes_nothing(found):
        raise SpecError(f"{name} takes no arguments, so that it cannot answer contexts; {fix}")


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return not inspect.signature(function).parameters
    except (
        Exception
    ):  # compiled functions may have none; other objects may answer any name with an error of their own
        return False


def _describe(name: str, error: BaseException) -> str:
    """The exception, its line in the file of the module, and the fix."""
    notes = getattr(error, "__notes__", [])  # of `as_callable`: how it was called
    place, text = _place(name, error), one_line("; ".join([*filter(None, [message_of(error)]), *notes]))
    if place is None:
        how = "" if notes else "; it is called as f(contexts) for sequences, as f(x, y) for prompts"
        return f"{name} cannot be called: {text}{how}"
    file, line = place
    return f"{name} raised {type(error).__name__} in {file}:{line}{': ' * bool(text)}{text}; fix it there"


def _place(name: str, error: BaseException) -> tuple[str, int] | None:
    """The innermost line in the module of the name, or else of all; None if that line is in mesascope."""
    if isinstance(error, SyntaxError) and error.filename:
        return _shown(error.filename), error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == _file(name.partition(":")[0])]
    innermost = (own or frames)[-1]
    if Path(innermost.filename).is_relative_to(_PACKAGE):
        return None
    return _shown(innermost.filename), innermost.lineno or 0


def _file(module: str) -> str | None:
    """The file of a module, even if importing it failed."""
    try:
        found = find_spec(module)
    except (Exception, SystemExit):  # find_spec imports the packages that contain the module
        return None
    return found.origin if found else None


def _shown(file: str) -> str:
    """A path relative to the current folder, if it is below it."""
    return file.removeprefix(os.getcwd() + os.sep)


def _without_name(error: Exception) -> str:
    """The message without the name of the argument: the error of a specification names its field."""
    return str(error).removeprefix("model: ")
