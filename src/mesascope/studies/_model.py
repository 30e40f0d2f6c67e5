"""What the specifications of models have in common: the shape of the data that they read, and drawn weights."""

from typing import TYPE_CHECKING, NamedTuple

from mesascope.processes import Data
from mesascope.specs import Seed, Spec

if TYPE_CHECKING:
    from jax import Array

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


class DrawnSpec(Spec):
    """A model whose weights are drawn.

    Attributes:
        seed: of the draw; by default that of the run.
    """

    seed: Seed | None = None

    def check(self, shape: Shape) -> None:
        """Accept every size."""

    def key(self, seed: int) -> "Array":
        """The random key of the weights, for this seed of the run."""
        from mesascope.core import named_key

        return named_key(seed if self.seed is None else self.seed, "init")
