"""Batches in pieces: among devices, and one after another.

The gradient of a batch is the mean of the gradients of its pieces. Devices work on theirs at the same time: accelerators, or the
cores of a CPU if JAX was told to see one device per core. On one CPU device the activations of a whole batch of a transformer
travel through main memory between all its operations; those of a piece stay in the cache, which halves the time of a step
(benchmarks/README.md). An accelerator wants its part in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, PartitionSpec

Loss = Callable[[Any, Any], Array]
"""(weights, sample) → mean loss."""

_CACHED_BYTES = 20 * 2**20
"""Bytes of all intermediate values of a loss that a piece may have, by measurement."""

_WORTHWHILE_BYTES = 2**20
"""Bytes of all intermediate values of a loss that are worth a device of their own, by measurement."""

_AXIS = "batch"


def number_of_devices(loss: Loss, most: int, weights: Any, sample: Any) -> int:
    """Among how many of at most `most` devices to divide a sample, a divisor of its batch."""
    if most == 1:
        return 1
    batch = _batch(sample)
    busy = min(most, _bytes_of(loss, weights, sample) // _WORTHWHILE_BYTES)
    return max(n for n in range(1, batch + 1) if batch % n == 0 and n <= max(1, busy))


def on_devices(function: Callable[[Any, Any], Any], devices: int) -> Callable[[Any, Any], Any]:
    """The mean of `function(weights, part)` over the equal parts of a sample, one part per device."""
    if devices == 1:
        return function
    mesh = Mesh(np.array(jax.local_devices()[:devices]), (_AXIS,), axis_types=(AxisType.Auto,))

    def mean(weights: Any, part: Any) -> Any:
        return jax.lax.pmean(function(weights, part), _AXIS)

    whole, cut = PartitionSpec(), PartitionSpec(_AXIS)
    return jax.shard_map(mean, mesh=mesh, in_specs=(whole, cut), out_specs=whole, check_vma=False)


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
    """Into how many equal pieces to cut a sample, a divisor of its batch."""
    if jax.default_backend() != "cpu":
        return 1
    batch = _batch(sample)
    wanted = max(1, math.ceil(_bytes_of(loss, weights, sample) / _CACHED_BYTES))
    # the closest one, not the next: a batch of 257 has no divisor but 1 and 257
    return min((n for n in range(1, batch + 1) if batch % n == 0), key=lambda n: abs(math.log(n / wanted)))


def _batch(sample: Any) -> int:
    return int(jax.tree.leaves(sample)[0].shape[0])


def _bytes_of(loss: Loss, weights: Any, sample: Any) -> int:
    return int(_intermediate_bytes(jax.make_jaxpr(loss)(weights, sample).jaxpr))


def _intermediate_bytes(jaxpr: Any) -> float:
    return sum(_equation_bytes(equation) for equation in jaxpr.eqns)


def _equation_bytes(equation: Any) -> float:
    inner = [
        value.jaxpr if hasattr(value, "jaxpr") else value
        for value in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        )
        if hasattr(value, "eqns") or hasattr(value, "jaxpr")
    ]
    if inner:
        return float(equation.params.get("length", 1)) * max(map(_intermediate_bytes, inner))
    shapes = [out.aval for out in equation.outvars if hasattr(out.aval, "shape")]
    return float(sum(np.prod(shape.shape, dtype=float) * _itemsize(shape.dtype) for shape in shapes))


def _itemsize(dtype: Any) -> int:
    return int(getattr(dtype, "itemsize", 8))
