"""The shape of data, which is what builders of models need to know of them."""

from typing import Literal, NamedTuple, TypeAlias

Data: TypeAlias = Literal["complex tokens", "real tokens", "symbols", "prompts"]
"""What a process draws."""

TOKENS: tuple[Data, ...] = ("complex tokens", "real tokens")
"""Sequences of continuous tokens."""
SYMBOLS: tuple[Data, ...] = ("symbols",)
"""Sequences of discrete tokens."""
PROMPTS: tuple[Data, ...] = ("prompts",)
"""Examples and a query."""


class Shape(NamedTuple):
    """The kind and the size of data.

    Attributes:
        data: the kind of data.
        width: token dimension, number of symbols, or dimension of the inputs.
        length: tokens per sequence, or examples per prompt.
    """

    data: Data
    width: int
    length: int
