"""Embeddings of sequences of tokens as streams."""

from __future__ import annotations

import abc
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import SYMBOLS, TOKENS, Positive, Size

from ._arrays import axes, finite_array, gaussian_array, positive_number, refuse_stacked
from ._specified import embedding

Layout = Literal["tokens", "stacked", "interleaved"]
"""The tokens of a stream: one per token of a sequence, one per pair (x, y) of a prompt, or one per x and one per y."""


class Embedding(eqx.Module):
    """A map of data to streams (…, n, width): of tokens in a sequence model, of x and y in a prompt model.

    Attributes:
        width: entries of a token of the stream.
        layout: "tokens" for sequences; for prompts "stacked" or "interleaved".
    """

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Entries of a token of the stream."""

    @property
    @abc.abstractmethod
    def layout(self) -> Layout:
        """The tokens of the stream: "tokens", or for prompts "stacked" or "interleaved"."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """Return the stream of tokens (…, T, d) or ints (…, T), or of x (…, N + 1, d) and y (…, N)."""


def checked_embedding(owner: str, given: object) -> Embedding:
    """Return `given` after checking that it is an embedding.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(given, Embedding):
        kind = type(given).__name__
        raise TypeError(f"{owner}: {kind} is not an embedding; use e.g. PairedTokens or StackedPrompt")
    return given


class TokenEmbedding(Embedding):
    """Base class of embeddings of sequences, with one token of the stream per token."""

    @property
    def layout(self) -> Layout:
        """One token of the stream per token."""
        return "tokens"


@embedding("bare-tokens", reads=TOKENS)
class BareTokens(TokenEmbedding):
    """The tokens, unchanged: e_t = x_t.

    Attributes:
        dim: token dimension d ≥ 1; also the width.

    Raises:
        TypeError, ValueError: if the dimension is not an integer ≥ 1; when called, for tokens of another shape.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: d."""
        return self.dim

    def __call__(self, tokens: Any) -> Array:
        """Return tokens (…, T, d), real or complex, unchanged."""
        return _continuous("BareTokens", tokens, self.dim)


@embedding("paired-tokens", reads=TOKENS)
class PairedTokens(TokenEmbedding):
    """Every token with its predecessor, after a block of zeros: e_t = (0; x_t; x_{t−1}), x_0 = 0.

    Attributes:
        dim: token dimension d ≥ 1; the width is 3d.

    Raises:
        TypeError, ValueError: if the dimension is not an integer ≥ 1; when called, for tokens of another shape.

    Source: zheng2024, section 3; sander2024 (augmented tokens).
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: 3d."""
        return 3 * self.dim

    def __call__(self, tokens: Any) -> Array:
        """Return the stream (…, T, 3d) of tokens (…, T, d), real or complex."""
        tokens = _continuous("PairedTokens", tokens, self.dim)
        previous = jnp.concatenate([jnp.zeros_like(tokens[..., :1, :]), tokens[..., :-1, :]], -2)
        return jnp.concatenate([jnp.zeros_like(tokens), tokens, previous], -1)


@embedding("one-hot", reads=SYMBOLS)
class OneHot(TokenEmbedding):
    """A unit vector for every discrete token: e_t = e_{s_t}.

    Attributes:
        vocabulary: number of symbols ≥ 1; also the width.

    Raises:
        TypeError, ValueError: if the vocabulary is not an integer ≥ 1; when called, for tokens that are not integers in
            0 … vocabulary − 1.
    """

    vocabulary: int = eqx.field(static=True)

    def __init__(self, vocabulary: int):
        self.vocabulary = integer_at_least("vocabulary", vocabulary, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: the vocabulary."""
        return self.vocabulary

    def __call__(self, tokens: Any) -> Array:
        """Return the stream (…, T, vocabulary) of integers (…, T)."""
        return jax.nn.one_hot(_discrete("OneHot", tokens, self.vocabulary), self.vocabulary, dtype=float)


@embedding("token-table", reads=SYMBOLS, width=8)
class TokenTable(TokenEmbedding):
    """A learned vector for every discrete token: e_t = row s_t of the table.

    Attributes:
        table: shape (vocabulary, width).
        vocabulary: number of symbols.

    Raises:
        TypeError, ValueError: for a table that is not a matrix of finite numbers; when called, for tokens that are not integers
            in 0 … vocabulary − 1.
    """

    table: Array = eqx.field(metadata=axes(2))

    def __init__(self, table: Any):
        self.table = finite_array("table", table, 2)

    @classmethod
    def gaussian(cls, vocabulary: int, width: Size, scale: Positive = 1.0, *, key: Array) -> Self:
        """Return a table of independent N(0, scale²) entries.

        Args:
            vocabulary: number of symbols ≥ 1.
            width: entries of a token of the stream.
            scale: standard deviation > 0.
            key: random key.
        """
        shape = integer_at_least("vocabulary", vocabulary, 1), integer_at_least("width", width, 1)
        return cls(gaussian_array(key, shape, positive_number("scale", scale)))

    @property
    def vocabulary(self) -> int:
        """Number of symbols: the rows of the table."""
        return int(self.table.shape[-2])

    @property
    def width(self) -> int:
        """Entries of a token of the stream."""
        return int(self.table.shape[-1])

    def __call__(self, tokens: Any) -> Array:
        """Return the stream (…, T, width) of integers (…, T)."""
        refuse_stacked(self)
        return self.table[_discrete("TokenTable", tokens, self.vocabulary)]


def _continuous(owner: str, tokens: Any, dim: int) -> Array:
    array = jnp.asarray(tokens)
    if array.ndim < 2 or array.shape[-1] != dim:
        fix = "; discrete tokens need OneHot or TokenTable" if _are_integers(array) else ""
        raise ValueError(
            f"{owner}: expected tokens of shape (…, T, {dim}), got {array.dtype} {array.shape}{fix}"
        )
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)


def _discrete(owner: str, tokens: Any, vocabulary: int) -> Array:
    array = jnp.asarray(tokens)
    if not _are_integers(array):
        raise TypeError(
            f"{owner}: tokens must be integers, got {array.dtype}; continuous tokens need BareTokens or PairedTokens"
        )
    if array.ndim < 1:
        raise ValueError(f"{owner}: expected tokens of shape (…, T), got a single number")
    if not isinstance(array, jax.core.Tracer) and array.size:
        low, high = np.min(array), np.max(array)
        if low < 0 or high >= vocabulary:
            wrong = low if low < 0 else high
            raise ValueError(f"{owner}: tokens must be in 0 … {vocabulary - 1}, got {wrong}")
    return array


def _are_integers(array: Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.integer))
