"""Specifications of the embeddings of composed models."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from mesascope.processes import Data
from mesascope.specs import Size, Spec, kinds, wrong

from ._model import PROMPTS, SYMBOLS, TOKENS, Shape

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Embedding

_POSITION_SCALE = 0.1  # as in `mesascope.models.transformer`: small beside the tokens


class _PositionedSpec(Spec):
    """An embedding, and the positions that are added to its streams.

    Attributes:
        positions: "learned" or "sinusoidal", if any are added.
    """

    reads: ClassVar[tuple[Data, ...]]
    kind: str
    positions: Literal["learned", "sinusoidal"] | None = None

    def check(self, shape: Shape) -> None:
        """Refuse data that it does not embed."""
        if shape.data not in self.reads:
            fitting = ", ".join(one.model_fields["kind"].default for one in _KINDS if shape.data in one.reads)
            raise wrong(f"'{self.kind}' does not embed {shape.data}; use one of {fitting}", "kind")

    def build(self, shape: Shape, key: "Array") -> "Embedding":
        """Return the embedding with its positions."""
        import jax

        from mesascope.models import LearnedPositions, SinusoidalPositions, WithPositions

        weights_key, positions_key = jax.random.split(key)
        embedding = self.without_positions(shape, weights_key)
        if self.positions is None:
            return embedding
        if self.positions == "sinusoidal":
            return WithPositions(embedding, SinusoidalPositions(embedding.width))
        sizes = (self.stream_length(shape.length), embedding.width, _POSITION_SCALE)
        return WithPositions(embedding, LearnedPositions.gaussian(*sizes, key=positions_key))

    def without_positions(self, shape: Shape, key: "Array") -> "Embedding":
        """The embedding alone."""
        raise NotImplementedError

    def stream_length(self, length: int) -> int:
        """Tokens of the longest stream that is trained: of a sequence without its last token."""
        return length - 1


class _ProjectedSpec(_PositionedSpec):
    """An embedding without weights, and a learned projection of its streams.

    Attributes:
        width: of the projection; without it there is none.
    """

    width: Size | None = None

    def without_positions(self, shape: Shape, key: "Array") -> "Embedding":
        """The embedding and its projection."""
        from mesascope.models import Projected

        bare = self.bare(shape.width)
        return bare if self.width is None else Projected.gaussian(bare, self.width, key=key)

    def bare(self, width: int) -> "Embedding":
        """The embedding alone, of tokens, symbols or inputs of this width."""
        raise NotImplementedError


class PairedTokensSpec(_ProjectedSpec):
    """Every token with its predecessor below an empty block: (0; x_t; x_{t−1})."""

    reads: ClassVar = TOKENS
    kind: Literal["paired-tokens"] = "paired-tokens"

    def bare(self, width: int) -> "Embedding":
        """The embedding alone."""
        from mesascope.models import PairedTokens

        return PairedTokens(width)


class BareTokensSpec(_ProjectedSpec):
    """The tokens themselves."""

    reads: ClassVar = TOKENS
    kind: Literal["bare-tokens"] = "bare-tokens"

    def bare(self, width: int) -> "Embedding":
        """The embedding alone."""
        from mesascope.models import BareTokens

        return BareTokens(width)


class OneHotSpec(_ProjectedSpec):
    """The unit vector of every symbol."""

    reads: ClassVar = SYMBOLS
    kind: Literal["one-hot"] = "one-hot"

    def bare(self, width: int) -> "Embedding":
        """The embedding alone."""
        from mesascope.models import OneHot

        return OneHot(width)


class TokenTableSpec(_PositionedSpec):
    """A learned vector for every symbol.

    Attributes:
        width: its entries.
    """

    reads: ClassVar = SYMBOLS
    kind: Literal["token-table"] = "token-table"
    width: Size

    def without_positions(self, shape: Shape, key: "Array") -> "Embedding":
        """The table."""
        from mesascope.models import TokenTable

        return TokenTable.gaussian(shape.width, self.width, key=key)


class StackedPromptSpec(_ProjectedSpec):
    """One token per pair: (x_i, y_i), and the query (x_q, 0)."""

    reads: ClassVar = PROMPTS
    kind: Literal["stacked-prompt"] = "stacked-prompt"

    def bare(self, width: int) -> "Embedding":
        """The embedding alone."""
        from mesascope.models import StackedPrompt

        return StackedPrompt(width)

    def stream_length(self, length: int) -> int:
        """The examples and the query."""
        return length + 1


class InterleavedPromptSpec(_ProjectedSpec):
    """One token per input and one per label: (x_i, 0), (0, y_i), and the query (x_q, 0)."""

    reads: ClassVar = PROMPTS
    kind: Literal["interleaved-prompt"] = "interleaved-prompt"

    def bare(self, width: int) -> "Embedding":
        """The embedding alone."""
        from mesascope.models import InterleavedPrompt

        return InterleavedPrompt(width)

    def stream_length(self, length: int) -> int:
        """Two tokens for every example, and the query."""
        return 2 * length + 1


_KINDS = (
    PairedTokensSpec,
    BareTokensSpec,
    OneHotSpec,
    TokenTableSpec,
    StackedPromptSpec,
    InterleavedPromptSpec,
)

EmbeddingSpec: TypeAlias = Annotated[
    PairedTokensSpec
    | BareTokensSpec
    | OneHotSpec
    | TokenTableSpec
    | StackedPromptSpec
    | InterleavedPromptSpec,
    Field(discriminator="kind"),
    kinds(*(one.model_fields["kind"].default for one in _KINDS)),
]
"""An embedding, told apart by `kind`."""
