r"""Ridge regression after every token, by recursive least squares.

The ridge solution of the first t tokens, applied to a query, is linear attention with another query:

    (Σ_{i≤t} v_i k_i*) (Σ_{i≤t} k_i k_i* + I/λ)^{-1} q_t = Σ_{i≤t} v_i (k_i* p_t),
    Σ_{i≤t} k_i (k_i* p_t) + p_t/λ = q_t.

The second line is a linear system for the p_t whose operator is linear attention, too. Recursive least squares solves it
in one pass; derivatives are computed from the system, not from the recursion.

R_t has an absolute error of λ times the rounding unit, which dominates if keys do not span the space (paired tokens of a
noiseless process). The recursion therefore runs in double precision for tokens of any precision: gradients in float32
have an error of the order of λ times the rounding unit of the tokens.

Source: vonoswald2024, section on the mesa layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._batched_matmul import batched_matmul
from ._kernels import causal_attention

_BLOCK = 64
"""Members of a batch whose R_t are computed together on CPUs, chosen by measurement."""


def causal_least_squares(values: Array, keys: Array, queries: Array, regularization: Any) -> Array:
    """Return Φ_t q_t with the ridge solution Φ_t = (Σ_{i≤t} v_i k_i*) (Σ_{i≤t} k_i k_i* + I/λ)^{-1}, for every t.

    Args:
        values: v_t, shape (T, m, batch).
        keys: k_t, shape (T, w, batch).
        queries: q_t, shape (T, w, batch).
        regularization: λ > 0, a number, or an array with one number for every member of the batch, shape (batch,).

    Returns:
        Shape (T, m, batch).
    """
    kind = jnp.result_type(values, keys, queries)
    values, keys, queries = (x.astype(kind) for x in (values, keys, queries))
    ridge = jnp.broadcast_to(jnp.asarray(regularization, keys.real.dtype), keys.shape[-1:])

    def operator(solution: Array) -> Array:
        return causal_attention(keys, keys, solution) + solution / ridge

    solution = jax.lax.custom_linear_solve(
        operator, queries, _solver(keys, ridge), _solver(keys.conj(), ridge)
    )
    return causal_attention(values, keys, solution)


def _solver(keys: Array, ridge: Array) -> Callable[[Any, Array], Array]:
    return lambda _, queries: _solve_in_double(keys, queries, ridge)


def _solve_in_double(keys: Array, queries: Array, ridge: Array) -> Array:
    with jax.enable_x64(True):
        kind = jnp.promote_types(queries.dtype, jnp.float64)
        wide = keys.astype(kind), queries.astype(kind), ridge.astype(jnp.float64)
        return _solve_in_blocks(*wide).astype(queries.dtype)


def _solve_in_blocks(keys: Array, queries: Array, ridge: Array) -> Array:
    """Return `_solve` in blocks whose R_t fit in the cache of a CPU, or for the whole batch on an accelerator."""
    batch = ridge.shape[0]
    blocks = math.ceil(batch / _BLOCK) if jax.default_backend() == "cpu" else 1
    if blocks == 1:
        return _solve(keys, queries, ridge)
    size = math.ceil(batch / blocks)

    def cut(x: Array) -> Array:
        filled = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, blocks * size - batch)])
        return jnp.moveaxis(filled.reshape(*x.shape[:-1], blocks, size), -2, 0)

    solved = jax.lax.map(lambda block: _solve(*block), (cut(keys), cut(queries), cut(ridge)))
    return jnp.moveaxis(solved, 0, -2).reshape(*queries.shape[:-1], blocks * size)[..., :batch]


def _solve(keys: Array, queries: Array, ridge: Array) -> Array:
    """Return R_t q_t with R_t = (Σ_{i≤t} k_i k_i* + I/λ)^{-1}, by one rank-one update per token (Sherman–Morrison).

    R_0 = λ I,    R_t = R_{t−1} − (R_{t−1} k_t)(R_{t−1} k_t)* / (1 + k_t* R_{t−1} k_t).
    """
    width, batch = keys.shape[1:]

    def step(inverse: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        key, query = (x[:, None] for x in now)
        seen = batched_matmul(inverse, key)
        norm = 1 + jnp.sum((key.conj() * seen).real, 0)
        inverse = inverse - seen / norm * jnp.swapaxes(seen, 0, 1).conj()
        return inverse, batched_matmul(inverse, query)[:, 0]

    start = jnp.eye(width, dtype=keys.dtype)[:, :, None] * jnp.broadcast_to(ridge, (1, 1, batch))
    return jax.lax.scan(step, start, (keys, queries))[1]
