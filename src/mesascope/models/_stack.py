"""Layers one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from jax import Array

from ._layer import Layer, checked_layer


class Stack(Layer):
    """Layers one after the other: z ← layer(z). Transformers stack `Residual` layers.

    Attributes:
        layers: any layers; the width of each is the output width of the previous one.

    Raises:
        TypeError: for something that is not a layer.
        ValueError: for an empty list of layers, or widths that do not fit.
    """

    layers: tuple[Layer, ...]

    def __init__(self, layers: Iterable[Layer]):
        self.layers = tuple(checked_layer("Stack", layer) for layer in layers)
        if not self.layers:
            raise ValueError("Stack: needs at least one layer, got none")
        for i, (before, after) in enumerate(pairwise(self.layers)):
            if before.output_width != after.width:
                raise ValueError(
                    f"Stack: layer {i} gives width {before.output_width}, layer {i + 1} takes {after.width}"
                )

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return self.layers[0].width

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return self.layers[-1].output_width

    @property
    def causal(self) -> bool:
        """Whether all layers are causal."""
        return all(layer.causal for layer in self.layers)

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        return self.outputs(stream)[-1]

    def outputs(self, stream: Any) -> tuple[Array, ...]:
        """Return the streams after every layer."""
        streams = []
        for layer in self.layers:
            stream = layer(stream)
            streams.append(stream)
        return tuple(streams)
