"""Descriptions of classes and their fields from docstrings, for help texts, pages and forms."""

import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from textwrap import dedent
from typing import Any, NamedTuple

from ._fields import Spec

_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:    .*\n?|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*): (.*(?:\n    .*)*)", re.MULTILINE)
REQUIRED: Any = object()
"""The default of a field that must be given."""


class FieldHelp(NamedTuple):
    """A field of a kind or of a specification.

    Attributes:
        name: its name.
        text: its description in the docstring; formulas are between `$` signs.
        default: its value if it is not given, or `REQUIRED`.
    """

    name: str
    text: str
    default: Any


def summary(cls: type[Any]) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())


def field_help(cls: type[Any]) -> tuple[FieldHelp, ...]:
    """Return the fields of a kind, or of a specification, in the order of their declaration.

    Their texts are in the sections `Args`, or else `Attributes`, of the docstrings of the class and of its base classes.
    """
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= _texts(vars(base).get("__doc__") or "")
    return tuple(FieldHelp(name, texts.get(name, ""), default) for name, default in _defaults(cls).items())


def _defaults(cls: type[Any]) -> dict[str, Any]:
    if issubclass(cls, Spec):
        return {
            name: REQUIRED if field.is_required() else field.get_default(call_default_factory=False)
            for name, field in cls.model_fields.items()
        }
    if is_dataclass(cls):
        return {
            one.name: REQUIRED if one.default is MISSING else one.default for one in fields(cls) if one.init
        }
    return {}


def _texts(docstring: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in _SECTION.findall(inspect.cleandoc(docstring) + "\n"):
        for names, text in _ENTRY.findall(dedent(section)):
            found = {name.strip("* "): " ".join(text.split()) for name in names.split(",")} | found
    return found
