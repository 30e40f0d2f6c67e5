"""Transformers of linear attention only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import equinox as eqx
from jax import Array

from ._batch_last_layer import BatchLastLayer
from ._kernels import batch_first, batch_last
from ._layer import checked_stream, repeatable_layer


class LinearAttentionStack(BatchLastLayer):
    """Layers with residual connections, z ← z + layer(z): a transformer of linear attention or mesa layers.

    The same as a `Stack` of `Residual` layers, but the layout of the stream is changed only once at the input and once at
    the output.

    Attributes:
        layers: `LinearSelfAttention`, `LowRankLinearSelfAttention`, `FactoredLinearSelfAttention` or `MesaLayer`, all of one
            width.

    Raises:
        TypeError: for other layers.
        ValueError: for an empty list of layers, or widths that differ.
    """

    layers: tuple[BatchLastLayer, ...]

    def __init__(self, layers: Iterable[Any]):
        self.layers = _checked(tuple(layers))

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return self.layers[0].width

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.width

    @property
    def causal(self) -> bool:
        """Whether all layers are causal."""
        return all(layer.causal for layer in self.layers)

    def on_batch_last(self, stream: Array) -> Array:
        """Return the stream after all layers, shape (n, width, batch)."""
        return self._streams(stream)[-1]

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token after all layers; the last layer computes no other tokens."""
        for layer in self.layers[:-1]:
            stream = stream + layer.on_batch_last(stream)
        return stream[-1:] + self.layers[-1].last_on_batch_last(stream)

    @eqx.filter_jit
    def outputs(self, stream: Any) -> tuple[Array, ...]:
        """Return the streams after every layer, each (…, n, width)."""
        stream = checked_stream(self, stream)
        return tuple(batch_first(z, stream.shape[:-2]) for z in self._streams(batch_last(stream)))

    def _streams(self, stream: Array) -> list[Array]:
        streams = []
        for layer in self.layers:
            stream = stream + layer.on_batch_last(stream)
            streams.append(stream)
        return streams


def _checked(layers: tuple[Any, ...]) -> tuple[BatchLastLayer, ...]:
    if not layers:
        raise ValueError("LinearAttentionStack: needs at least one layer, got none")
    for layer in layers:
        if not isinstance(layer, BatchLastLayer) or isinstance(layer, LinearAttentionStack):
            kind = type(layer).__name__
            raise TypeError(f"LinearAttentionStack: {kind} is not linear attention; use Stack and Residual")
        first, width = layers[0].width, repeatable_layer("LinearAttentionStack", layer).width
        if width != first:
            raise ValueError(f"LinearAttentionStack: all layers must have one width, got {first} and {width}")
    return layers
