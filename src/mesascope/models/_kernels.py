"""The kernels of attention without softmax.

Streams are (n, w, batch) here: the batch is the last axis, so that every step on tokens of a few entries is one long
vector operation (`_batched_matmul.py`). No T × T array is built.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._batched_matmul import batched_matmul


def batch_last(stream: Array) -> Array:
    """Return the stream (…, n, w) as (n, w, batch), with the leading axes flattened into the batch."""
    return jnp.moveaxis(stream.reshape(math.prod(stream.shape[:-2]), *stream.shape[-2:]), 0, -1)


def batch_first(stream: Array, lead: tuple[int, ...]) -> Array:
    """Return the stream (n, w, batch) as (*lead, n, w): the inverse of `batch_last`."""
    return jnp.moveaxis(stream, -1, 0).reshape(*lead, *stream.shape[:2])


def project(stream: Array, weights: Array) -> Array:
    """Return the stream (…, w) times the transpose of weights (out, w), shape (…, out).

    All leading axes are merged: with more of them, XLA on CPUs copies and recomputes activations for the gradient.
    """
    flat = stream.reshape(math.prod(stream.shape[:-1]), stream.shape[-1]) @ weights.T
    return flat.reshape(*stream.shape[:-1], weights.shape[0])


def project_last(weights: Array, stream: Array) -> Array:
    """Return weights (…, out, w) times every token of the stream (n, w, batch), shape (…, n, out, batch)."""
    return jnp.einsum("...ij,njb->...nib", weights, stream)


def context_attention(values: Array, keys: Array, queries: Array) -> Array:
    """Return Σ_i v_i (k_i* q_t), where all queries attend to the same tokens i.

    Args:
        values: shape (n, m, batch).
        keys: shape (n, w, batch); conjugated here.
        queries: shape (T, w, batch).

    Returns:
        Shape (T, m, batch).
    """
    memory = batched_matmul(jnp.swapaxes(keys.conj(), 0, 1), values)
    return batched_matmul(queries, memory)


def causal_attention(values: Array, keys: Array, queries: Array) -> Array:
    """Return Σ_{i≤t} v_i (k_i* q_t) for every t, in time and memory linear in T.

    Chunks of tokens are scanned: inside a chunk every query is multiplied with every earlier key; all tokens before the
    chunk are summed in the memory Σ k_i v_i^T. States inside a chunk are recomputed for the gradient.

    Args:
        values: shape (T, m, batch).
        keys: shape (T, w, batch); conjugated here.
        queries: shape (T, w, batch).

    Returns:
        Shape (T, m, batch).
    """
    horizon, width, batch = keys.shape
    chunk = min(_chunk(horizon, width, batch), horizon)
    earlier = np.tril(np.ones((chunk, chunk), bool))[:, :, None]

    @jax.checkpoint
    def step(memory: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        value, key, query = now
        scores = jnp.where(earlier, batched_matmul(query, jnp.swapaxes(key, 0, 1)), 0)
        seen = batched_matmul(scores, value) + batched_matmul(query, memory)
        return memory + batched_matmul(jnp.swapaxes(key, 0, 1), value), seen

    start = jnp.zeros((keys.shape[1], *values.shape[1:]), jnp.result_type(values, keys))
    xs = tuple(_chunks(x, chunk) for x in (values, keys.conj(), queries))
    seen = jax.lax.scan(step, start, xs)[1]
    return seen.reshape(-1, *seen.shape[2:])[:horizon]


def causal_merged_attention(w_kq: Array, w_pv: Array, stream: Array) -> Array:
    """Return Σ_h W^PV_h (Σ_{i≤t} z_i z_i*) W^KQ_h z_t for every t, without normalizer.

    Heads are computed one by one: the memories Σ v_i z_i* of all of them together exceed the processor's cache.

    Args:
        w_kq: shape (heads, w, w).
        w_pv: shape (heads, out, w).
        stream: shape (T, w, batch).

    Returns:
        Shape (T, out, batch).
    """
    seen = [
        causal_attention(project_last(pv, stream), stream, project_last(kq, stream))
        for kq, pv in zip(w_kq, w_pv, strict=True)
    ]
    return sum(seen[1:], seen[0])


def _chunk(horizon: int, width: int, batch: int) -> int:
    """Return the number of tokens per chunk, chosen by measurement (benchmarks/README.md).

    One token per step moves the least data. It is best if the batch fills a vector operation, and either the states stored
    for the gradient are few or a step is too small to gain from products of chunks. Small batches need larger chunks.
    """
    if batch < 64:
        return 16 if batch >= 8 else 32
    few = horizon * width**2 * batch <= 2**21
    return 1 if few or (width < 16 and horizon <= 512) else 16


def _chunks(tokens: Array, chunk: int) -> Array:
    """Return tokens (T, w, batch) as (⌈T/chunk⌉, chunk, w, batch), with zero tokens at the end."""
    count = math.ceil(tokens.shape[0] / chunk)
    missing = count * chunk - tokens.shape[0]
    if missing:
        tokens = jnp.concatenate([tokens, jnp.zeros((missing, *tokens.shape[1:]), tokens.dtype)])
    return tokens.reshape(count, chunk, *tokens.shape[1:])
