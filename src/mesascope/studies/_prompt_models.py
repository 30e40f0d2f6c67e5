"""Specifications of models of prompts that are made of linear attention."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import model_validator

from mesascope.specs import Depth, Positive, Rho, Size, at, wrong

from ._constructions import ConstructionSpec
from ._model import PROMPTS, DrawnSpec, Shape

if TYPE_CHECKING:
    from mesascope.models import PromptModel


class _PromptStackSpec(DrawnSpec):
    """Layers of linear attention on stacked prompts.

    Attributes:
        heads: how many in every layer.
        scale: standard deviation > 0 of the weights.
        rho: the normalizer ρ_t; "t-1" is the number of examples.
        context: the tokens that a query sees: "causal", "all", or "examples".
    """

    heads: Size = 1
    scale: Positive = 0.1
    rho: Rho = "t-1"
    context: Literal["causal", "all", "examples"] = "examples"

    def options(self, seed: int) -> dict[str, Any]:
        """What the builders of both kinds take."""
        return {"key": self.key(seed), "normalizer": self.rho, "context": self.context}


class PromptLinearTransformerSpec(_PromptStackSpec):
    """Layers of linear attention on stacked prompts, each with its own weights.

    Attributes:
        layers: how many.
        start: an algorithm that its one head runs at the start, instead of drawn weights.
    """

    reads: ClassVar = PROMPTS
    kind: Literal["prompt-linear-transformer"] = "prompt-linear-transformer"
    layers: Depth
    start: ConstructionSpec | None = None

    @model_validator(mode="after")
    def _one_head_runs_an_algorithm(self) -> Self:
        if self.start is not None and self.heads > 1:
            raise wrong(f"must be 1 where start says what the layers run, got {self.heads}", "heads")
        return self

    def build(self, shape: Shape, seed: int) -> "PromptModel":
        """Return the model."""
        from mesascope.models import prompt_linear_transformer

        if self.start is not None:
            with at("start"):
                return self._constructed(self.start, shape.width)
        sizes = (shape.width, self.layers, self.heads, float(self.scale))
        return prompt_linear_transformer(*sizes, **self.options(seed))

    def _constructed(self, start: ConstructionSpec, dim: int) -> "PromptModel":
        from mesascope.models import (
            LastEntry,
            LinearAttentionStack,
            LinearSelfAttention,
            PromptModel,
            StackedPrompt,
        )

        weights = start.build(dim)
        if len(weights.w_kq) != self.layers:
            raise ValueError(
                f"is of {len(weights.w_kq)} layers, but layers is {self.layers}; make them equal"
            )
        layers = [LinearSelfAttention(*one, self.rho, self.context) for one in zip(*weights, strict=True)]
        return PromptModel(StackedPrompt(dim), LinearAttentionStack(layers), LastEntry(-1))


class LoopedLinearTransformerSpec(_PromptStackSpec):
    """Layers of linear attention on stacked prompts, applied again and again.

    Attributes:
        loops: how often.
        layers: how many in every loop.
    """

    reads: ClassVar = PROMPTS
    kind: Literal["looped-linear-transformer"] = "looped-linear-transformer"
    loops: Size
    layers: Depth = 1

    def build(self, shape: Shape, seed: int) -> "PromptModel":
        """Return the model."""
        from mesascope.models import looped_linear_transformer

        sizes = (shape.width, self.loops, self.layers, self.heads, float(self.scale))
        return looped_linear_transformer(*sizes, **self.options(seed))
