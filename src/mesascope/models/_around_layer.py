"""Layers around one layer: a residual connection, no first token, normalization before it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ._layer import AroundLayer, Layer, checked_layer, checked_stream, repeatable_layer
from ._layer_norm import LayerNorm


class Residual(AroundLayer):
    """A residual connection: z ↦ z + layer(z).

    Attributes:
        layer: any layer whose two widths are equal.

    Raises:
        TypeError: for something that is not a layer.
        ValueError: for a layer whose two widths differ.
    """

    layer: Layer

    def __init__(self, layer: Layer):
        self.layer = repeatable_layer("Residual", layer)

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, width)."""
        stream = checked_stream(self, stream)
        return stream + self.layer(stream)


class AfterFirst(AroundLayer):
    """A layer on all tokens but the first, which it does not see; the new first token is 0.

    Attributes:
        layer: any layer.

    Raises:
        TypeError: for something that is not a layer.
    """

    layer: Layer

    def __init__(self, layer: Layer):
        self.layer = checked_layer("AfterFirst", layer)

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        stream = checked_stream(self, stream)
        rest = self.layer(stream[..., 1:, :] if stream.shape[-2] > 1 else stream)
        return jnp.concatenate([jnp.zeros_like(rest[..., :1, :]), rest], -2)[..., : stream.shape[-2], :]

    def last(self, stream: Any) -> Array:
        """Return the last token only: (…, n, width) → (…, 1, output width)."""
        stream = checked_stream(self, stream)
        return self.layer.last(stream[..., 1:, :]) if stream.shape[-2] > 1 else self(stream)


class PreNorm(AroundLayer):
    """Layer normalization, then the layer: z ↦ layer(norm(z)).

    Attributes:
        layer: any layer.
        norm: a `LayerNorm` of the layer's width; by default `LayerNorm.unit`.

    Raises:
        TypeError: for something that is not a layer or not a `LayerNorm`.
        ValueError: for widths that differ.
    """

    layer: Layer
    norm: LayerNorm

    def __init__(self, layer: Layer, norm: LayerNorm | None = None):
        self.layer = checked_layer("PreNorm", layer)
        self.norm = checked_norm("PreNorm", norm, self.layer.width)

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        return self.layer(self.norm(stream))


def checked_norm(owner: str, norm: object, width: int) -> LayerNorm:
    """Return the normalization of tokens of this width: `norm`, or `LayerNorm.unit` for None.

    Raises:
        TypeError: for something that is not a `LayerNorm`.
        ValueError: for a normalization of another width.
    """
    if norm is None:
        return LayerNorm.unit(width)
    if not isinstance(norm, LayerNorm):
        raise TypeError(f"{owner}: norm must be a LayerNorm, got {type(norm).__name__}")
    if norm.width != width:
        raise ValueError(f"{owner}: the norm has width {norm.width}, what follows it {width}")
    return norm
