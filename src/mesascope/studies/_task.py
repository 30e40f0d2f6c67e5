"""How long samples are, and which predictions count."""

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

from mesascope.processes import given_weights
from mesascope.specs import Number, SpecError, integer, unknown, written

_MAX_HORIZON = 10**12
_MAX_EXAMPLES = 10**6  # weights are listed one by one
_NAMED = ("last", "every")


def _named_or_weights(value: Any) -> Any:
    """`"last"`, `"every"`, or weights."""
    if not isinstance(value, str):
        return given_weights(value)
    if value not in _NAMED:
        raise SpecError(unknown("value", value, _NAMED))
    return value


Horizon: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=3, le=_MAX_HORIZON)]
"""Tokens per sequence T."""
Examples: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=_MAX_EXAMPLES)]
"""Examples N before the query."""
Weights: TypeAlias = Annotated[
    dict[int, Number] | tuple[Number, ...] | None, PlainValidator(given_weights), PlainSerializer(written)
]
NamedWeights: TypeAlias = Annotated[
    str | dict[int, Number] | tuple[Number, ...] | None,
    PlainValidator(_named_or_weights),
    PlainSerializer(written),
]
"""Weights by context length or example count, or the name of a choice: "last" or "every"."""
