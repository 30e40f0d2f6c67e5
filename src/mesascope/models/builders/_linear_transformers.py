"""One layer of linear attention, and several layers on paired tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mesascope.core import split_keys
from mesascope.specs import TOKENS, Depth, Positive, Rho, Size, error_path, kind

from .._normalizer import Normalizer
from ._inits import InitField
from ._model import ModelKind, model

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import (
        BatchLastLayer,
        FactoredLinearAttention,
        LinearAttentionModel,
        MultiHeadLinearAttention,
        SequenceModel,
    )
    from mesascope.specs import Shape


@kind("linear-attention", init={"kind": "diagonal", "a": 0.1, "b": 0.1})
class OneHead(ModelKind):
    """One layer of linear attention with one head, the model of the exact engine.

    Args:
        init: initial weights, as for a flow.
        rho: the normalizer ρ_t.
    """

    reads = TOKENS
    init: InitField
    rho: Rho = "t-1"

    def check(self, shape: Shape) -> None:
        """Refuse explicit weights of another dimension."""
        self.init.check(shape.width)

    def build(self, shape: Shape, seed: int) -> LinearAttentionModel:
        """Return the model."""
        with error_path("init"):
            return self.init.build(shape.width, self.rho, seed)


@model("multi-head-linear-attention", reads=TOKENS, heads=2)
def multi_head_linear_attention(
    dim: int, heads: Size, scale: Positive = 0.1, *, key: Array, normalizer: Normalizer = "t-1"
) -> MultiHeadLinearAttention:
    """One layer of linear attention with several heads.

    Args:
        dim: token dimension d.
        heads: number of heads.
        scale: standard deviation > 0 of the weights.
        key: random key.
        normalizer: the normalizer ρ_t.
    """
    from mesascope.models import MultiHeadLinearAttention

    return MultiHeadLinearAttention.gaussian(dim, heads, scale, key=key, normalizer=normalizer)


@model("factored-linear-attention", reads=TOKENS)
def factored_linear_attention(
    dim: int,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    key_size: Size | None = None,
    value_size: Size | None = None,
    normalizer: Normalizer = "t-1",
) -> FactoredLinearAttention:
    """One layer of linear attention with weights W_K, W_Q, W_P, W_V.

    Args:
        dim: token dimension d.
        heads: number of heads.
        scale: standard deviation > 0 of the weights.
        key: random key.
        key_size: entries of the keys of every head; by default 2d.
        value_size: entries of the values of every head; by default d.
        normalizer: the normalizer ρ_t.
    """
    from mesascope.models import FactoredLinearAttention

    sizes = {"key_size": key_size, "value_size": value_size}
    return FactoredLinearAttention.gaussian(dim, heads, scale, key=key, normalizer=normalizer, **sizes)


@model("linear-transformer", reads=TOKENS, layers=2)
def linear_transformer(
    dim: int,
    layers: Depth,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    normalizer: Normalizer = "t-1",
) -> SequenceModel:
    """Linear attention on paired tokens (0; x_t; x_{t−1}); ŷ_t is the first block of the last stream.

    One layer is `LinearAttention`. Source: zheng2024, section 3; vonoswald2024 (several layers).

    Args:
        dim: token dimension d.
        layers: number of layers.
        heads: number of heads in every layer.
        scale: standard deviation > 0 of the weights.
        key: random key.
        normalizer: the normalizer ρ_t.
    """
    from mesascope.models import LinearSelfAttention

    keys = split_keys(key, layers)
    return on_paired_tokens(
        dim, [LinearSelfAttention.gaussian(3 * dim, heads, scale, key=k, normalizer=normalizer) for k in keys]
    )


@model("factored-linear-transformer", reads=TOKENS, layers=2)
def factored_linear_transformer(
    dim: int,
    layers: Depth,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    key_size: Size | None = None,
    value_size: Size | None = None,
    normalizer: Normalizer = "t-1",
) -> SequenceModel:
    """The same as `linear_transformer`, with weights W_K, W_Q, W_P, W_V.

    Args:
        dim: token dimension d.
        layers: number of layers.
        heads: number of heads in every layer.
        scale: standard deviation > 0 of the weights.
        key: random key.
        key_size: entries of the keys of every head; by default 3d.
        value_size: entries of the values of every head; by default 3d.
        normalizer: the normalizer ρ_t.
    """
    from mesascope.models import FactoredLinearSelfAttention

    keys = split_keys(key, layers)
    drawn = [
        FactoredLinearSelfAttention.gaussian(
            3 * dim, heads, scale, key=k, key_size=key_size, value_size=value_size, normalizer=normalizer
        )
        for k in keys
    ]
    return on_paired_tokens(dim, drawn)


@model("mesa-transformer", reads=TOKENS)
def mesa_transformer(
    dim: int,
    layers: Depth = 1,
    heads: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    key_size: Size | None = None,
    value_size: Size | None = None,
    regularization: Positive = 1.0,
) -> SequenceModel:
    """Mesa layers on paired tokens: ridge regression in context. Source: vonoswald2024.

    Args:
        dim: token dimension d.
        layers: number of layers.
        heads: number of heads in every layer.
        scale: standard deviation > 0 of the weights.
        key: random key.
        key_size: entries of the keys of every head; by default 3d.
        value_size: entries of the values of every head; by default 3d.
        regularization: λ > 0 at the start; it is trained.
    """
    from mesascope.models import MesaLayer

    keys = split_keys(key, layers)
    sizes: Any = {"key_size": key_size, "value_size": value_size, "regularization": regularization}
    return on_paired_tokens(dim, [MesaLayer.gaussian(3 * dim, heads, scale, key=k, **sizes) for k in keys])


def on_paired_tokens(dim: int, layers: Iterable[BatchLastLayer]) -> SequenceModel:
    """Return layers on paired tokens whose first block is the prediction."""
    from mesascope.models import FirstBlock, LinearAttentionStack, PairedTokens, SequenceModel

    return SequenceModel(PairedTokens(dim), LinearAttentionStack(layers), FirstBlock(dim))
