"""How long samples are, and which predictions count."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator

from mesascope.specs import Number, as_list, nonnegative, placed, show, unknown, written, wrong

MOST_HORIZON = 10**12
MOST_EXAMPLES = 10**6  # weights of prompts are listed one by one
NAMED_WEIGHTS = ("last", "every")


def _weights(value: Any) -> dict[int, Number] | tuple[Number, ...] | None:
    """Weights by context length, from a table with the lengths as keys or a list of all."""
    given = as_list(value)
    if given is None:
        return None
    if isinstance(given, list | tuple):
        return tuple(placed(nonnegative, one, i) for i, one in enumerate(given))
    if not isinstance(given, Mapping):
        raise wrong(f"must be a table from context lengths to weights, or their list, got {show(given)}")
    table: dict[int, Number] = {}
    for key, one in given.items():
        text = str(key)
        if isinstance(key, bool) or not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise wrong(f"{show(key)} is no context length; write an integer t = 2 … horizon − 1")
        if int(text) in table:
            raise wrong(f"context length {int(text)} is given twice; keep one")
        table[int(text)] = placed(nonnegative, one, text)
    return table


def _named_or_weights(value: Any) -> str | dict[int, Number] | tuple[Number, ...] | None:
    """`"last"`, `"every"`, or weights."""
    if not isinstance(value, str):
        return _weights(value)
    if value not in NAMED_WEIGHTS:
        raise wrong(unknown("value", value, NAMED_WEIGHTS))
    return value


Horizon: TypeAlias = Annotated[int, Field(strict=True, ge=3, le=MOST_HORIZON)]
"""Tokens per sequence T."""
Examples: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=MOST_EXAMPLES)]
"""Examples N before the query."""
Weights: TypeAlias = Annotated[
    dict[int, Number] | tuple[Number, ...] | None, PlainValidator(_weights), PlainSerializer(written)
]
NamedWeights: TypeAlias = Annotated[
    str | dict[int, Number] | tuple[Number, ...] | None,
    PlainValidator(_named_or_weights),
    PlainSerializer(written),
]
"""Weights by context length or example count, or the name of a choice: "last" or "every"."""
