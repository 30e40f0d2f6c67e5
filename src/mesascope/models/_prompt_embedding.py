"""Embeddings of prompts, which are examples (x_i, y_i) and a query x_q, as streams."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import PROMPTS

from ._embedding import Embedding, Layout
from ._specified import embedding


@embedding("stacked-prompt", reads=PROMPTS)
class StackedPrompt(Embedding):
    """One token per pair: (x_1, y_1), …, (x_N, y_N), and the query (x_q, 0).

    Attributes:
        dim: dimension of the inputs d ≥ 1; the width is d + 1, the stream has N + 1 tokens.

    Raises:
        TypeError, ValueError: if the dimension is not an integer ≥ 1; when called, for x or y of another shape.

    Source: vonoswald2023, section 2; ahn2023, section 2.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: d + 1."""
        return self.dim + 1

    @property
    def layout(self) -> Layout:
        """One token of the stream per pair."""
        return "stacked"

    def __call__(self, x: Any, y: Any) -> Array:
        """Return the stream (…, N + 1, d + 1) of inputs (…, N + 1, d) and labels (…, N)."""
        x, y = _prompt("StackedPrompt", x, y, self.dim)
        labels = jnp.concatenate([y, jnp.zeros_like(x[..., :1, 0])], -1)
        return jnp.concatenate([x, labels[..., None]], -1)


@embedding("interleaved-prompt", reads=PROMPTS)
class InterleavedPrompt(Embedding):
    """One token per input and one per label: (x_1, 0), (0, y_1), …, (x_N, 0), (0, y_N), and the query (x_q, 0).

    Attributes:
        dim: dimension of the inputs d ≥ 1; the width is d + 1, the stream has 2N + 1 tokens.

    Raises:
        TypeError, ValueError: if the dimension is not an integer ≥ 1; when called, for x or y of another shape.

    Source: vonoswald2023, section 4 (a first layer that copies tokens).
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def width(self) -> int:
        """Entries of a token of the stream: d + 1."""
        return self.dim + 1

    @property
    def layout(self) -> Layout:
        """Two tokens of the stream per pair."""
        return "interleaved"

    def __call__(self, x: Any, y: Any) -> Array:
        """Return the stream (…, 2N + 1, d + 1) of inputs (…, N + 1, d) and labels (…, N)."""
        x, y = _prompt("InterleavedPrompt", x, y, self.dim)
        inputs = jnp.concatenate([x, jnp.zeros_like(x[..., :1])], -1)
        labels = jnp.concatenate([jnp.zeros_like(x[..., :-1, :]), y[..., None]], -1)
        pairs = jnp.stack([inputs[..., :-1, :], labels], -2)
        flat = pairs.reshape(*x.shape[:-2], -1, self.width)
        return jnp.concatenate([flat, inputs[..., -1:, :]], -2)


def _prompt(owner: str, x: Any, y: Any, dim: int) -> tuple[Array, Array]:
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.ndim < 2 or x.shape[-1] != dim or x.shape[-2] < 1:
        raise ValueError(f"{owner}: expected x of shape (…, N + 1, {dim}), got {x.shape}")
    if y.shape != (*x.shape[:-2], x.shape[-2] - 1):
        wanted = f"a label for each of the {x.shape[-2] - 1} examples before the query"
        raise ValueError(f"{owner}: y must hold {wanted}, got x {x.shape} and y {y.shape}")
    kind = jnp.result_type(x, y)
    kind = kind if jnp.issubdtype(kind, jnp.inexact) else jnp.result_type(float)
    return x.astype(kind), y.astype(kind)
