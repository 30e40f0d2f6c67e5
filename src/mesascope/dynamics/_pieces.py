"""Batches in pieces that fit the cache.

The gradient of a batch is the mean of the gradients of its pieces. On a CPU the activations of a whole batch of a transformer
travel through main memory between all its operations; those of a piece stay in the cache, which halves the time of a step
(benchmarks/README.md). An accelerator needs the whole batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Loss = Callable[[Any, Any], Array]
"""(weights, sample) → mean loss."""

_CACHED_BYTES = 20 * 2**20
"""Bytes of all intermediate values of a loss that a piece may have, by measurement."""


def in_pieces(loss: Loss, weights: Any, sample: Any) -> tuple[Array, Any]:
    """Mean loss of a sample and its gradient, from pieces that fit the cache, one after another."""
    pieces = number_of_pieces(loss, weights, sample)
    if pieces == 1:
        return jax.value_and_grad(loss)(weights, sample)
    cut = jax.tree.map(lambda x: x.reshape(pieces, -1, *x.shape[1:]), sample)

    def add(totals: Any, piece: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, totals, jax.value_and_grad(loss)(weights, piece)), None

    shapes = jax.eval_shape(jax.value_and_grad(loss), weights, sample)
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    totals = jax.lax.scan(add, zero, cut)[0]
    return jax.tree.map(lambda x: x / pieces, totals)


def number_of_pieces(loss: Loss, weights: Any, sample: Any) -> int:
    """The number of equal pieces of a sample; it divides the batch."""
    if jax.default_backend() != "cpu":
        return 1
    batch = batch_of(sample)
    wanted = max(1, math.ceil(bytes_of(loss, weights, sample) / _CACHED_BYTES))
    # the closest one, not the next: a batch of 257 has no divisor but 1 and 257
    return min((n for n in range(1, batch + 1) if batch % n == 0), key=lambda n: abs(math.log(n / wanted)))


def batch_of(sample: Any) -> int:
    """The number of sequences or prompts of a sample."""
    return int(jax.tree.leaves(sample)[0].shape[0])


def bytes_of(loss: Loss, weights: Any, sample: Any) -> int:
    """Bytes of all intermediate values of a loss."""
    return int(_intermediate_bytes(jax.make_jaxpr(loss)(weights, sample).jaxpr))


def _intermediate_bytes(jaxpr: Any) -> float:
    return sum(_equation_bytes(equation) for equation in jaxpr.eqns)


def _equation_bytes(equation: Any) -> float:
    inner = inner_jaxprs(equation)
    if inner:
        return float(equation.params.get("length", 1)) * max(map(_intermediate_bytes, inner))
    return float(sum(output_bytes(equation)))


def inner_jaxprs(equation: Any) -> list[Any]:
    """The jaxprs of a loop, a branch or a call."""
    leaves = jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
    )
    return [
        getattr(leaf, "jaxpr", leaf) for leaf in leaves if hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr")
    ]


def output_bytes(equation: Any) -> list[int]:
    """Bytes of every array that an equation computes."""
    arrays = [out.aval for out in equation.outvars if hasattr(out.aval, "dtype")]
    return [int(np.prod(one.shape, dtype=object)) * int(getattr(one.dtype, "itemsize", 8)) for one in arrays]
