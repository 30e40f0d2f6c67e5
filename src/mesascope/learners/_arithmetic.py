"""Arithmetic that learners share: full precision on every device, in the type of the data."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array

# By default GPUs multiply 32-bit numbers with 10 bits of mantissa, fewer than the learners differ by.
einsum = partial(jnp.einsum, precision="highest")


def in_type_of(reference: Array, *values: Any) -> tuple[Array, ...]:
    """The values as arrays of the reference's type.

    Raises:
        TypeError: for complex values where the reference is real.
    """
    arrays = tuple(jnp.asarray(value) for value in values)
    for array in arrays:
        if jnp.iscomplexobj(array) and not jnp.iscomplexobj(reference):
            raise TypeError(
                f"a learner's memory of {reference.dtype} got {array.dtype}; init it with a complex dtype"
            )
    return tuple(array.astype(reference.dtype) for array in arrays)


def real_like(reference: Array, value: Array) -> Array:
    """A real hyperparameter in the precision of the reference, so that 32-bit data stay in 32 bits."""
    return value.astype(jnp.finfo(reference.dtype).dtype)


def like(reference: Array, value: Array) -> Array:
    """A real or complex hyperparameter in the precision of the reference."""
    precision = jnp.finfo(reference.dtype).dtype
    return value.astype(jnp.result_type(precision, jnp.complex64) if jnp.iscomplexobj(value) else precision)


def per_example(total: Array, n: Array) -> Array:
    """A sum over n examples divided by n; a sum over none stays as it is."""
    return total / jnp.maximum(n, 1).astype(jnp.finfo(total.dtype).dtype)


def inverse_above(floor: Array, value: Array) -> Array:
    """1/value where value > floor, else 0: the inverse of what is not zero up to rounding."""
    above = value > floor
    return jnp.where(above, 1 / jnp.where(above, value, 1), 0)
