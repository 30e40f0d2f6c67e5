"""Checks of arrays of JAX; the entries of traced arrays cannot be checked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..specs import show


def finite_array(name: str, value: Any, ndim: int | None = None) -> Array:
    """Return the value as a real or complex array with finite entries.

    Args:
        name: the name of the array for the user; error messages begin with it.
        value: the array.
        ndim: the number of axes, each with at least one entry; by default any shape.

    Raises:
        TypeError: for something that is not an array of numbers.
        ValueError: for another number of axes, or an entry that is not finite.
    """
    array = numbers(name, value)
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        array = array.astype(float)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} axes, got shape {array.shape}")
    if ndim is not None and 0 in array.shape:
        raise ValueError(f"{name}: every axis must have at least one entry, got shape {array.shape}")
    if concrete(array) and not np.isfinite(np.asarray(array)).all():
        raise ValueError(f"{name}: every entry must be finite")
    return array


def numbers(name: str, value: Any) -> Array:
    """Return the value as an array of JAX.

    Raises:
        TypeError: for something that is not an array of numbers.
    """
    try:
        array = jnp.asarray(value)
    # of text with thousands of digits JAX says SyntaxError, of integers that no double holds OverflowError
    except (TypeError, ValueError, OverflowError, SyntaxError):
        array = None
    if array is None or not isinstance(array.dtype, np.dtype):  # of random keys it is another one
        raise TypeError(
            f"{name}: not an array of numbers: {show(value)}; give numbers, in rows of equal length"
        )
    return array


def concrete(*values: Any) -> bool:
    """Return whether all values are known, i.e. none of them is traced."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)
