"""Arithmetic of learners, in full precision on every device and in the type of the data."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array

# By default GPUs multiply 32-bit numbers with 10 bits of mantissa, whose errors exceed differences between learners.
einsum = partial(jnp.einsum, precision="highest")


def in_type_of(reference: Array, *values: Any) -> tuple[Array, ...]:
    """Return the values as arrays of the type of `reference`.

    Raises:
        TypeError: a value is complex and the reference is real.
    """
    arrays = tuple(jnp.asarray(value) for value in values)
    for array in arrays:
        if jnp.iscomplexobj(array) and not jnp.iscomplexobj(reference):
            raise TypeError(
                f"a learner's memory of {reference.dtype} got {array.dtype}; create it with a complex dtype"
            )
    return tuple(array.astype(reference.dtype) for array in arrays)


def real_in_precision_of(reference: Array, value: Array) -> Array:
    """Return a real hyperparameter in the precision of the reference, so that 32-bit data remain in 32 bits."""
    return value.astype(jnp.finfo(reference.dtype).dtype)


def in_precision_of(reference: Array, value: Array) -> Array:
    """Return a real or complex hyperparameter in the precision of the reference."""
    precision = jnp.finfo(reference.dtype).dtype
    return value.astype(jnp.result_type(precision, jnp.complex64) if jnp.iscomplexobj(value) else precision)


def per_example(total: Array, n: Array) -> Array:
    """Return a sum over n examples divided by n, unchanged for n = 0."""
    return total / jnp.maximum(n, 1).astype(jnp.finfo(total.dtype).dtype)


def inverse_above(floor: Array, value: Array) -> Array:
    """Return 1/value where value > floor, else 0: the inverse of values that are not zero up to rounding."""
    above = value > floor
    return jnp.where(above, 1 / jnp.where(above, value, 1), 0)


def log_or_minus_infinity(x: Array) -> Array:
    """Return the logarithm of a number ≥ 0, with derivative 0 at 0."""
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -jnp.inf)
