"""Embeddings made from another embedding: with a learned projection, positions, or real and imaginary parts."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least

from ._arrays import axes, finite_array, gaussian_array, refuse_stacked
from ._embedding import Embedding, Layout, checked_embedding
from ._kernels import project
from ._positions import LearnedPositions, SinusoidalPositions


class AroundEmbedding(Embedding):
    """Base class of embeddings made from another embedding, with its layout."""

    embedding: eqx.AbstractVar[Embedding]

    @property
    def layout(self) -> Layout:
        """The layout of the inner embedding."""
        return self.embedding.layout


class Projected(AroundEmbedding):
    """A learned projection of every token of a stream: e_t = W e'_t.

    `Projected(BareTokens(dim), weights)` is the dense embedding of continuous tokens.

    Attributes:
        embedding: an embedding of tokens or of prompts.
        weights: shape (width, width of the embedding); real or complex.

    Raises:
        TypeError, ValueError: for something that is not an embedding, or weights that do not fit or are not finite.
    """

    embedding: Embedding
    weights: Array = eqx.field(metadata=axes(2))

    def __init__(self, embedding: Embedding, weights: Any):
        self.embedding = checked_embedding("Projected", embedding)
        self.weights = finite_array("weights", weights, 2)
        if self.weights.shape[1] != self.embedding.width:
            raise ValueError(
                f"Projected: weights must be (width, {self.embedding.width}), got {self.weights.shape}"
            )

    @classmethod
    def gaussian(cls, embedding: Embedding, width: int, *, key: Array) -> Self:
        """Return a projection with independent N(0, 1/width of the embedding) entries."""
        fan_in = checked_embedding("Projected", embedding).width
        shape = integer_at_least("width", width, 1), fan_in
        return cls(embedding, gaussian_array(key, shape, fan_in**-0.5))

    @property
    def width(self) -> int:
        """Entries of a token of the stream."""
        return int(self.weights.shape[-2])

    def __call__(self, *data: Any) -> Array:
        """Return the stream, shape (…, n, width), of data that the embedding takes."""
        refuse_stacked(self)
        return project(self.embedding(*data), self.weights)


class WithPositions(AroundEmbedding):
    """An embedding with a vector for every position added to the stream: e_t = e'_t + p_t.

    Attributes:
        embedding: an embedding of tokens or of prompts.
        positions: `LearnedPositions` or `SinusoidalPositions` of the same width.

    Raises:
        TypeError: for something that is not an embedding, or not positions.
        ValueError: for widths that differ; when called, for a stream longer than the learned positions.
    """

    embedding: Embedding
    positions: LearnedPositions | SinusoidalPositions

    def __init__(self, embedding: Embedding, positions: Any):
        self.embedding = checked_embedding("WithPositions", embedding)
        if not isinstance(positions, LearnedPositions | SinusoidalPositions):
            known = "LearnedPositions or SinusoidalPositions"
            raise TypeError(f"WithPositions: positions must be {known}, got {type(positions).__name__}")
        if positions.width != embedding.width:
            raise ValueError(
                f"WithPositions: the positions have width {positions.width}, the embedding {embedding.width}"
            )
        self.positions = positions

    @property
    def width(self) -> int:
        """Entries of a token of the stream."""
        return self.embedding.width

    def __call__(self, *data: Any) -> Array:
        """Return the stream, shape (…, n, width), of data that the embedding takes."""
        return self.positions(self.embedding(*data))


class RealForm(AroundEmbedding):
    """An embedding of complex tokens as real tokens (Re x_t; Im x_t) of twice the dimension.

    Attributes:
        embedding: an embedding of real tokens of dimension 2d.

    Raises:
        TypeError: for something that is not an embedding of tokens; when called, for tokens that are not complex.
    """

    embedding: Embedding

    def __init__(self, embedding: Embedding):
        self.embedding = checked_embedding("RealForm", embedding)
        if embedding.layout != "tokens":
            raise TypeError(f"RealForm: must embed tokens, but {type(embedding).__name__} embeds prompts")

    @property
    def width(self) -> int:
        """Entries of a token of the stream."""
        return self.embedding.width

    def __call__(self, tokens: Any) -> Array:
        """Return the stream (…, T, width) of complex tokens (…, T, d)."""
        tokens = jnp.asarray(tokens)
        if not jnp.iscomplexobj(tokens) or tokens.ndim < 2:
            raise TypeError(
                f"RealForm: tokens must be complex and of shape (…, T, d), got {tokens.dtype} {tokens.shape}; "
                f"real tokens need {type(self.embedding).__name__} alone"
            )
        return self.embedding(jnp.concatenate([jax.lax.real(tokens), jax.lax.imag(tokens)], -1))
