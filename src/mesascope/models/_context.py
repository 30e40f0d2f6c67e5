"""The tokens that a query attends to, and the normalizer of their sum."""

from __future__ import annotations

from typing import get_args

import numpy as np
from jax import Array

from mesascope.specs import show

from ._kernels import causal_attention, context_attention
from ._normalizer import Normalizer, normalizer_inverses
from ._specified import Context


def check_context(context: object) -> Context:
    """Return `context` after checking that it is one of the known ones.

    Raises:
        ValueError: for anything else.
    """
    for known in get_args(Context):
        if isinstance(context, str) and context == known:
            return known
    raise ValueError(f"context: {show(context)} is unknown; use one of {', '.join(get_args(Context))}")


def attention(values: Array, keys: Array, queries: Array, context: Context) -> Array:
    """Return Σ_i v_i (k_i* q_t) over the visible tokens: (n, m, batch) and twice (n, w, batch) → (n, m, batch)."""
    if context == "causal":
        return causal_attention(values, keys, queries)
    return context_attention(visible(values, context), visible(keys, context), queries)


def visible(stream: Array, context: Context) -> Array:
    """Return the tokens that all queries attend to if the context is not causal: all n, or all but the last."""
    return stream[:-1] if context == "examples" else stream


def inverse_normalizers(normalizer: Normalizer, context: Context, tokens: int) -> np.ndarray:
    """Return 1/ρ for the query of every token, shape (tokens,).

    ρ is evaluated at the number of tokens up to and including the query: t if causal, else all of them, so that "t-1"
    divides by the number of examples.
    """
    lengths = np.arange(1, tokens + 1) if context == "causal" else np.full(tokens, tokens)
    return normalizer_inverses(normalizer, lengths)
