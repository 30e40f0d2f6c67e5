"""Batches in pieces that fit the cache.

The gradient of a batch is the mean of the gradients of its pieces. On a CPU the activations of a whole batch of a
transformer travel through main memory between all its operations; those of a piece stay in the cache, which halves the
time of a step (benchmarks/README.md). An accelerator wants the whole batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

_CACHED_BYTES = 20 * 2**20
"""Bytes of all intermediate values of a loss that a piece may have, by measurement."""


def number_of_pieces(loss: Callable[..., Any], batch: int, *arguments: Any) -> int:
    """Into how many equal pieces to split a batch for `loss(*arguments)`, a divisor of `batch`."""
    if jax.default_backend() != "cpu":
        return 1
    jaxpr = eqx.filter_make_jaxpr(loss)(*arguments)[0].jaxpr
    wanted = max(1, math.ceil(_intermediate_bytes(jaxpr) / _CACHED_BYTES))
    # the closest one, not the next: a batch of 257 has no divisor but 1 and 257
    return min((n for n in range(1, batch + 1) if batch % n == 0), key=lambda n: abs(math.log(n / wanted)))


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
