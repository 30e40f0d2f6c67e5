r"""Ridge regression after every token, by recursive least squares.

The ridge solution of the first t tokens, applied to a query, is linear attention with another query:

    (Σ_{i≤t} v_i k_i*) (Σ_{i≤t} k_i k_i* + I/λ)^{-1} q_t = Σ_{i≤t} v_i (k_i* p_t),
    Σ_{i≤t} k_i (k_i* p_t) + p_t/λ = q_t.

The second line is a linear system for the p_t whose operator is linear attention too. Recursive least squares solves it in
one pass, and its derivatives follow from the system, not from the recursion.

In single precision R_t loses what lies below λ times the rounding unit: where keys do not span the space (paired tokens of a
noiseless process) gradients are off by 1e-3 relative at λ = 1 and are worthless from λ = 100 on; take float64 there.

Source: vonoswald2024, section on the mesa layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._batched_matmul import batched_matmul
from ._kernels import causal_attention


def causal_least_squares(values: Array, keys: Array, queries: Array, regularization: Any) -> Array:
    """Φ_t q_t with the ridge solution Φ_t = (Σ_{i≤t} v_i k_i*) (Σ_{i≤t} k_i k_i* + I/λ)^{-1}, for every t.

    Args:
        values: v_t, shape (T, m, batch).
        keys: k_t, shape (T, w, batch).
        queries: q_t, shape (T, w, batch).
        regularization: λ > 0, a number, or one for every member of the batch, shape (batch,).

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
    return lambda _, queries: _solve(keys, queries, ridge)


def _solve(keys: Array, queries: Array, ridge: Array) -> Array:
    """R_t q_t with R_t = (Σ_{i≤t} k_i k_i* + I/λ)^{-1}, from one rank-one step per token (Sherman–Morrison).

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
