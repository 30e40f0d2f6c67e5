"""The base class of layers: maps of streams of tokens."""

from __future__ import annotations

import abc
from typing import Any, Protocol

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ._arrays import refuse_stacked


class Layer(eqx.Module):
    """A map of streams (…, n, width) → (…, n, output width), with any leading axes.

    Attributes:
        width: entries of an input token.
        output_width: entries of an output token.
        causal: whether token t of the output depends on the tokens 1 … t of the input only.
    """

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Entries of an input token."""

    @property
    @abc.abstractmethod
    def output_width(self) -> int:
        """Entries of an output token."""

    @property
    @abc.abstractmethod
    def causal(self) -> bool:
        """Whether token t of the output depends on the tokens 1 … t of the input only."""

    @abc.abstractmethod
    def __call__(self, stream: Any) -> Array:
        """Return the new stream, shape (…, n, output width)."""

    def last(self, stream: Any) -> Array:
        """Return the last token of the new stream, shape (…, 1, output width); some layers compute no others."""
        return self(stream)[..., -1:, :]


class AroundLayer(Layer):
    """Base class of layers that contain a layer and have its widths and causality."""

    layer: eqx.AbstractVar[Layer]

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return self.layer.width

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return self.layer.output_width

    @property
    def causal(self) -> bool:
        """Whether the inner layer is causal."""
        return self.layer.causal


def checked_layer(owner: str, layer: object) -> Layer:
    """Return `layer` after checking that it is a layer.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(layer, Layer):
        kind = type(layer).__name__
        raise TypeError(f"{owner}: {kind} is not a layer; use e.g. LinearSelfAttention, Residual or Stack")
    return layer


def repeatable_layer(owner: str, layer: object) -> Layer:
    """Return `layer` after checking that its output can be its input.

    Raises:
        TypeError: for something that is not a layer.
        ValueError: for a layer whose two widths differ.
    """
    layer = checked_layer(owner, layer)
    if layer.width != layer.output_width:
        kind = type(layer).__name__
        raise ValueError(
            f"{owner}: {kind} maps width {layer.width} to {layer.output_width}, but the two must be equal"
        )
    return layer


class _Wide(Protocol):
    """A layer, or positions, that take streams of this width."""

    @property
    def width(self) -> int: ...


def checked_stream(part: _Wide, stream: Any) -> Array:
    """Return a stream for a layer, or for positions, as an array of floating-point or complex numbers.

    Raises:
        ValueError: for a shape other than (…, n, width) with n ≥ 1, or an empty batch; for a stack of several layers.
    """
    refuse_stacked(part)
    owner, width, array = type(part).__name__, part.width, jnp.asarray(stream)
    if array.ndim < 2 or array.shape[-1] != width or array.shape[-2] < 1:
        raise ValueError(f"{owner}: expected a stream of shape (…, n, {width}) with n ≥ 1, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"{owner}: the batch is empty, got a stream of shape {array.shape}")
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)


def checked_real_stream(part: _Wide, stream: Any) -> Array:
    """Return a stream for a layer as an array of floating-point numbers.

    Raises:
        TypeError: for a complex stream.
        ValueError: as `checked_stream`.
    """
    array = checked_stream(part, stream)
    if jnp.iscomplexobj(array):
        raise TypeError(
            f"{type(part).__name__}: needs real streams, got {array.dtype}; embed complex tokens with RealForm"
        )
    return array
