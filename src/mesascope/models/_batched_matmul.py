"""Products of many small matrices, with the batch as the last axis.

Linear attention on small tokens multiplies thousands of matrices of a few rows. On CPUs the general batched product of
XLA has a large overhead per matrix; here every entry of the result is one vector operation over the batch. The product
is a JAX primitive because it is bilinear and its two transposes are products of the same kind: derivatives of every
order, in both modes, are as fast as the product.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

_MAX_UNROLLED = 32
_MIN_BATCH = 8


def batched_matmul(left: Array, right: Array) -> Array:
    """Return Σ_k left[i, k, b] right[k, j, b].

    Args:
        left: shape (i, k, batch).
        right: shape (k, j, batch), of the same type.

    Returns:
        Shape (i, j, batch).
    """
    product: Array = _product.bind(left, right)
    return product


def _as_dot(left: Array, right: Array) -> Array:
    with jax.enable_x64(True):  # this is traced later, perhaps outside the 64-bit mode of the operands
        return jnp.einsum("ikb,kjb->ijb", left, right)


def _as_vectors(left: Array, right: Array) -> Array:
    length, batch = left.shape[1:]
    if not 0 < length <= _MAX_UNROLLED or batch < _MIN_BATCH:
        return _as_dot(left, right)
    left, right = jax.lax.optimization_barrier((left, right))
    total = left[:, 0, None] * right[None, 0]
    for k in range(1, length):
        total = total + left[:, k, None] * right[None, k]
    is_vector = length > 1 and 1 in (left.shape[0], right.shape[1])
    return once(total) if is_vector else jax.lax.optimization_barrier(total)


def once(total: Array) -> Array:
    """Return the same numbers, which XLA does not compute again for every entry of what they are used for.

    It fuses sums and products into their users, and forgets barriers before it does: an outer product v (M k)* would compute
    M k for each of its columns. A gather is never fused in this way.
    """
    rows = jnp.arange(len(total))
    return total.at[rows].get(mode="promise_in_bounds", unique_indices=True, indices_are_sorted=True)


def _transpose_left(cotangent: Any, left: Any, right: Array) -> Any:
    return ad.Zero(left.aval) if type(cotangent) is ad.Zero else _product.bind(cotangent, _transposed(right))


def _transpose_right(cotangent: Any, left: Array, right: Any) -> Any:
    return ad.Zero(right.aval) if type(cotangent) is ad.Zero else _product.bind(_transposed(left), cotangent)


def _transposed(matrices: Array) -> Array:
    return jnp.swapaxes(matrices, 0, 1)


def _vmap_rule(operands: tuple[Array, Array], axes: tuple[int | None, int | None]) -> tuple[Array, int]:
    """Return the product under `vmap`: the new axis becomes part of the batch."""
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    left, right = (
        jnp.broadcast_to(x[..., None, :], (*x.shape[:2], size, x.shape[-1]))
        if a is None
        else jnp.moveaxis(x, a, -2)
        for x, a in zip(operands, axes, strict=True)
    )
    batch = left.shape[-1]
    flat = _product.bind(*(x.reshape(*x.shape[:2], size * batch) for x in (left, right)))
    return flat.reshape(*flat.shape[:2], size, batch), 2


_product = Primitive("batched_matmul")
_product.def_impl(jax.jit(lambda left, right: _product.bind(left, right)))
_product.def_abstract_eval(
    lambda left, right: jax.core.ShapedArray((left.shape[0], right.shape[1], left.shape[2]), left.dtype)
)
ad.defbilinear(_product, _transpose_left, _transpose_right)
batching.primitive_batchers[_product] = _vmap_rule
mlir.register_lowering(_product, mlir.lower_fun(_as_dot, multiple_results=False))
mlir.register_lowering(_product, mlir.lower_fun(_as_vectors, multiple_results=False), platform="cpu")
