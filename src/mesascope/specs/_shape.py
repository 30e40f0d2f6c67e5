"""The shape of data: what a model needs to know to be built for them."""

from typing import Literal, NamedTuple, TypeAlias

Data: TypeAlias = Literal["complex tokens", "real tokens", "symbols", "prompts"]
"""What a process draws."""

TOKENS: tuple[Data, ...] = ("complex tokens", "real tokens")
SYMBOLS: tuple[Data, ...] = ("symbols",)
PROMPTS: tuple[Data, ...] = ("prompts",)


class Shape(NamedTuple):
    """What a model needs to know about the data.

    Attributes:
        data: what is drawn.
        width: token dimension, number of symbols, or dimension of the inputs.
        length: tokens per sequence, or examples per prompt.
    """

    data: Data
    width: int
    length: int
