"""Specifications of softmax transformers."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from mesascope.specs import Depth, Size, wrong

from ._model import PROMPTS, SYMBOLS, TOKENS, DrawnSpec, Shape

if TYPE_CHECKING:
    from mesascope.models import PromptModel, SequenceModel


class _SoftmaxSpec(DrawnSpec):
    """A softmax transformer.

    Attributes:
        width: of its streams, a multiple of heads.
        layers, heads: how many.
    """

    width: Size
    layers: Depth
    heads: Size

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if self.width % self.heads:
            raise wrong(f"must divide the width {self.width}, got {self.heads}", "heads")
        return self


class TransformerSpec(_SoftmaxSpec):
    """A softmax transformer of continuous tokens, real or complex."""

    reads: ClassVar = TOKENS
    kind: Literal["transformer"] = "transformer"

    def build(self, shape: Shape, seed: int) -> "SequenceModel":
        """Return the model; it has as many positions as the longest context that is trained."""
        from mesascope.models import transformer

        sizes = (self.width, self.layers, self.heads, shape.length - 1)
        complex_tokens = shape.data == "complex tokens"
        return transformer(shape.width, *sizes, key=self.key(seed), complex_tokens=complex_tokens)


class TokenTransformerSpec(_SoftmaxSpec):
    """A softmax transformer of discrete tokens."""

    reads: ClassVar = SYMBOLS
    kind: Literal["token-transformer"] = "token-transformer"

    def build(self, shape: Shape, seed: int) -> "SequenceModel":
        """Return the model; it has as many positions as the longest context that is trained."""
        from mesascope.models import token_transformer

        sizes = (self.width, self.layers, self.heads, shape.length - 1)
        return token_transformer(shape.width, *sizes, key=self.key(seed))


class PromptTransformerSpec(_SoftmaxSpec):
    """A softmax transformer of interleaved prompts."""

    reads: ClassVar = PROMPTS
    kind: Literal["prompt-transformer"] = "prompt-transformer"

    def build(self, shape: Shape, seed: int) -> "PromptModel":
        """Return the model."""
        from mesascope.models import prompt_transformer

        sizes = (self.width, self.layers, self.heads, shape.length)
        return prompt_transformer(shape.width, *sizes, key=self.key(seed))
