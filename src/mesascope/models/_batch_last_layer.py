"""Layers that compute with the batch as the last axis."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ._kernels import batch_first, batch_last
from ._layer import Layer, checked_stream


class BatchLastLayer(Layer):
    """A layer given by a map of streams (n, width, batch); stacks of such layers keep this layout."""

    @abc.abstractmethod
    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""

    @eqx.filter_jit
    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        stream = checked_stream(self, stream)
        return batch_first(self.on_batch_last(batch_last(stream)), stream.shape[:-2])

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only: (n, width, batch) → (1, output width, batch)."""
        return self.on_batch_last(stream)[-1:]

    @eqx.filter_jit
    def last(self, stream: Any) -> Array:
        """Return the last token of the new stream: (…, n, width) → (…, 1, output width)."""
        stream = checked_stream(self, stream)
        return batch_first(self.last_on_batch_last(batch_last(stream)), stream.shape[:-2])


def in_product_type(stream: Array, *weights: Array) -> Array:
    """Return the stream in the type of its products with the weights, since the kernels take operands of one type."""
    return stream.astype(jnp.result_type(stream, *weights))
