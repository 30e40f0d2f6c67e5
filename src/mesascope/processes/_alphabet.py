"""Fields of processes of symbols: the size of the alphabet, and the parameter of a Dirichlet prior."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

from ..specs import Number, SpecError, in_file_form, integer, positive

_MIN, _MAX = 1e-30, 1e30  # single precision ends at 1e-38 and 3e38


def _concentration(value: Any) -> Number:
    given = positive(value)
    if not _MIN <= given <= _MAX:
        raise SpecError(f"must lie between 1e-30 and 1e30, got {float(given):g}")
    return given


Symbols: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=2, le=2**16)]
"""A number of symbols, 2 to 65536."""
Concentration: TypeAlias = Annotated[Number, PlainValidator(_concentration), PlainSerializer(in_file_form)]
"""The parameter of a symmetric Dirichlet distribution, 1e-30 to 1e30."""
