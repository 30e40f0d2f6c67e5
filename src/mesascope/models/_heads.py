"""Heads of attention: their factored weights, and their streams as members of the batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys

from ._arrays import finite_array, gaussian_array
from ._kernels import project_last


class Factors(NamedTuple):
    """Weights of every head: W_K and W_Q (heads, key, width), W_P (heads, out, value), W_V (heads, value, width)."""

    w_k: Array
    w_q: Array
    w_p: Array
    w_v: Array


def checked_factors(w_k: Any, w_q: Any, w_p: Any, w_v: Any) -> Factors:
    """Return the factors as arrays after checking that their shapes fit together.

    Raises:
        TypeError, ValueError: for anything but arrays of finite numbers with three axes whose shapes fit.
    """
    given = {"w_k": w_k, "w_q": w_q, "w_p": w_p, "w_v": w_v}
    k, q, p, v = (finite_array(name, value, 3) for name, value in given.items())
    heads, _, width = k.shape
    if not (k.shape == q.shape and p.shape[0] == heads and v.shape == (heads, p.shape[2], width)):
        shapes = ", ".join(f"{n} {x.shape}" for n, x in zip(given, (k, q, p, v), strict=True))
        wanted = "w_k and w_q (heads, key, width), w_p (heads, out, value), w_v (heads, value, width)"
        raise ValueError(f"factored weights do not fit: got {shapes}; expected {wanted}")
    return Factors(k, q, p, v)


def factor_shapes(
    width: int, heads: int, key_size: int | None, value_size: int | None, output_width: int | None
) -> tuple[tuple[int, int, int], ...]:
    """Return the shapes of w_k, w_q, w_p and w_v; by default every size is the width, which keeps the rank full."""
    width, heads = integer_at_least("width", width, 1), integer_at_least("heads", heads, 1)
    given = {"key_size": key_size, "value_size": value_size, "output_width": output_width}
    sizes = (width if size is None else integer_at_least(name, size, 1) for name, size in given.items())
    key, value, output = sizes
    return (heads, key, width), (heads, key, width), (heads, output, value), (heads, value, width)


def gaussian_factors(key: Array, shapes: tuple[tuple[int, int, int], ...], scales: Any) -> Factors:
    """Return factors of independent N(0, scale²) entries, with one scale for each of the four factors."""
    keys = split_keys(key, len(shapes))
    return Factors(*(gaussian_array(*drawn) for drawn in zip(keys, shapes, scales, strict=True)))


def head_streams(weights: Array, stream: Array) -> Array:
    """Return W_h z_t of every head: (heads, m, width) and (n, width, batch) → (n, m, heads · batch).

    Heads become members of the batch, so that one call of a kernel computes all of them.
    """
    heads, size, width = weights.shape
    merged = jnp.swapaxes(weights, 0, 1).reshape(size * heads, width)
    return project_last(merged, stream).reshape(len(stream), size, heads * stream.shape[-1])


def projected_heads(weights: Array, streams: Array) -> Array:
    """Return Σ_h P_h u_h: (heads, out, m) and (n, m, heads · batch) → (n, out, batch)."""
    heads, output, size = weights.shape
    merged = jnp.moveaxis(weights, 0, -1).reshape(output, size * heads)
    return project_last(merged, streams.reshape(len(streams), size * heads, -1))
