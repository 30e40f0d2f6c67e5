"""Layers of linear attention on stacked prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mesascope.core import split_keys
from mesascope.specs import PROMPTS, Depth, Positive, Size, SpecError, error_path, of_family, one_of

from .._normalizer import Normalizer
from .._specified import Context
from ._model import model

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import LinearAttentionStack, PromptModel


def _refuse_unbuildable(spec: Any) -> None:
    if spec.start is not None and spec.heads > 1:
        raise SpecError(f"must be 1 if start gives the algorithm of the layers, got {spec.heads}", "heads")
    if spec.start is not None and spec.rank is not None:
        raise SpecError(
            "belongs to random weights, but start gives those of an algorithm; leave one out", "rank"
        )


@model("prompt-linear-transformer", reads=PROMPTS, refuse=_refuse_unbuildable, layers=2)
def prompt_linear_transformer(
    dim: int,
    layers: Depth,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    normalizer: Normalizer = "t-1",
    context: Context = "examples",
    rank: Size | None = None,
    start: Annotated[Any, *one_of("construction")] | None = None,
) -> PromptModel:
    """Linear attention on stacked prompts (x_i, y_i), (x_q, 0); ŷ = −(label entry of the query).

    Source: ahn2023, section 2; vonoswald2023, section 2; with a rank zhang2025 (separate keys and queries).

    Args:
        dim: dimension of the inputs.
        layers: number of layers.
        heads: number of heads in every layer.
        scale: standard deviation > 0 of the weights.
        key: random key.
        normalizer: the normalizer ρ_t; "t-1" is the number of examples.
        context: the tokens that a query attends to: "causal", "all", or "examples".
        rank: entries of the keys and queries of every head, at most dim; by default both are merged into one matrix.
        start: an algorithm whose weights the layers have at the start, with one head, instead of random weights.
    """
    from mesascope.models import LastEntry, PromptModel, StackedPrompt

    if start is None:
        stack = _drawn(dim, layers, heads, scale, key, normalizer, context, rank)
    else:
        with error_path("start"):
            stack = _constructed(of_family("construction", start).build(dim), layers, normalizer, context)
    return PromptModel(StackedPrompt(dim), stack, LastEntry(-1))


@model("looped-linear-transformer", reads=PROMPTS, loops=2)
def looped_linear_transformer(
    dim: int,
    loops: Size,
    layers: Depth = 1,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    normalizer: Normalizer = "t-1",
    context: Context = "examples",
) -> PromptModel:
    """The same as `prompt_linear_transformer`, with its layers applied `loops` times.

    Source: gatmiry2024, section 2; vonoswald2023 (two looped layers).

    Args:
        dim: dimension of the inputs.
        loops: number of loops.
        layers: number of layers in every loop.
        heads: number of heads in every layer.
        scale: standard deviation > 0 of the weights.
        key: random key.
        normalizer: the normalizer ρ_t; "t-1" is the number of examples.
        context: the tokens that a query attends to: "causal", "all", or "examples".
    """
    from mesascope.models import LastEntry, Looped, PromptModel, StackedPrompt

    stack = _drawn(dim, layers, heads, scale, key, normalizer, context)
    return PromptModel(StackedPrompt(dim), Looped(stack, loops), LastEntry(-1))


def _drawn(
    dim: int,
    layers: int,
    heads: int,
    scale: Any,
    key: Array,
    normalizer: Normalizer,
    context: Context,
    rank: int | None = None,
) -> LinearAttentionStack:
    from mesascope.models import LinearAttentionStack, LinearSelfAttention, LowRankLinearSelfAttention

    keys = split_keys(key, layers)
    attends: Any = {"normalizer": normalizer, "context": context}
    if rank is None:
        return LinearAttentionStack(
            LinearSelfAttention.gaussian(dim + 1, heads, scale, key=k, **attends) for k in keys
        )
    if rank > dim:
        raise ValueError(
            f"rank: must be at most dim = {dim}, the number of directions of the inputs, got {rank}; take a smaller rank"
        )
    return LinearAttentionStack(
        LowRankLinearSelfAttention.gaussian(dim + 1, heads, scale, key=k, rank=rank, **attends) for k in keys
    )


def _constructed(weights: Any, layers: int, normalizer: Normalizer, context: Context) -> LinearAttentionStack:
    from mesascope.models import LinearAttentionStack, LinearSelfAttention

    if len(weights.w_kq) != layers:
        raise ValueError(f"has {len(weights.w_kq)} layers, but layers is {layers}; make them equal")
    return LinearAttentionStack(
        [LinearSelfAttention(kq, pv, normalizer, context) for kq, pv in zip(*weights, strict=True)]
    )
