"""Embeddings of sequences: tokens in, streams out."""

from __future__ import annotations

import abc
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import SYMBOLS, TOKENS, Size

from ._arrays import finite_array, gaussian_array, positive_number
from ._specified import embedding

Layout = Literal["tokens", "stacked", "interleaved"]
"""What a stream is made of: one token per token, one per pair (x, y) of a prompt, or one per x and one per y."""


class Embedding(eqx.Module):
    """A map of data to streams (…, n, width): of tokens for a sequence model, of x and y for a prompt model.

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
        """What the stream is made of: "tokens", or for prompts "stacked" or "interleaved"."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """The stream of tokens (…, T, d) or ints (…, T), or of x (…, N + 1, d) and y (…, N)."""


def checked_embedding(owner: str, given: object) -> Embedding:
    """The embedding itself, if it is one.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(given, Embedding):
        kind = type(given).__name__
        raise TypeError(f"{owner}: {kind} is not an embedding; use e.g. PairedTokens or StackedPrompt")
    return given


class TokenEmbedding(Embedding):
    """What embeddings of sequences share: one token of the stream per token."""

    @property
    def layout(self) -> Layout:
        """One token of the stream per token."""
        return "tokens"


@embedding("bare-tokens", reads=TOKENS)
class BareTokens(TokenEmbedding):
    """The tokens themselves: e_t = x_t.

    Attributes:
        dim: token dimension d ≥ 1; also the width.

    Raises:
        TypeError, ValueError: for a dimension that is no integer ≥ 1; when called, for tokens of another shape.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: d."""
        return self.dim

    def __call__(self, tokens: Any) -> Array:
        """Tokens (…, T, d), real or complex → the same."""
        return _continuous("BareTokens", tokens, self.dim)


@embedding("paired-tokens", reads=TOKENS)
class PairedTokens(TokenEmbedding):
    """Every token with its predecessor below an empty block: e_t = (0; x_t; x_{t−1}), x_0 = 0.

    Attributes:
        dim: token dimension d ≥ 1; the width is 3d.

    Raises:
        TypeError, ValueError: for a dimension that is no integer ≥ 1; when called, for tokens of another shape.

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
        """Tokens (…, T, d), real or complex → (…, T, 3d)."""
        tokens = _continuous("PairedTokens", tokens, self.dim)
        before = jnp.concatenate([jnp.zeros_like(tokens[..., :1, :]), tokens[..., :-1, :]], -2)
        return jnp.concatenate([jnp.zeros_like(tokens), tokens, before], -1)


@embedding("one-hot", reads=SYMBOLS)
class OneHot(TokenEmbedding):
    """The unit vector of every discrete token: e_t = e_{s_t}.

    Attributes:
        vocabulary: number of symbols ≥ 1; also the width.

    Raises:
        TypeError, ValueError: for a vocabulary that is no integer ≥ 1; when called, for tokens that are no integers in
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
        """Integers (…, T) → (…, T, vocabulary)."""
        return jax.nn.one_hot(_discrete("OneHot", tokens, self.vocabulary), self.vocabulary, dtype=float)


@embedding("token-table", reads=SYMBOLS, width=8)
class TokenTable(TokenEmbedding):
    """A learned vector for every discrete token: e_t = row s_t of the table.

    Attributes:
        table: shape (vocabulary, width).
        vocabulary: number of symbols.

    Raises:
        TypeError, ValueError: for a table that is no matrix of finite numbers; when called, for tokens that are no integers
            in 0 … vocabulary − 1.
    """

    table: Array

    def __init__(self, table: Any):
        self.table = finite_array("table", table, 2)

    @classmethod
    def gaussian(cls, vocabulary: int, width: Size, scale: float = 1.0, *, key: Array) -> Self:
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
        """Integers (…, T) → (…, T, width)."""
        return self.table[_discrete("TokenTable", tokens, self.vocabulary)]


def _continuous(owner: str, tokens: Any, dim: int) -> Array:
    array = jnp.asarray(tokens)
    if array.ndim < 2 or array.shape[-1] != dim:
        mend = "; discrete tokens need OneHot or TokenTable" if _are_integers(array) else ""
        raise ValueError(
            f"{owner}: expected tokens of shape (…, T, {dim}), got {array.dtype} {array.shape}{mend}"
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
