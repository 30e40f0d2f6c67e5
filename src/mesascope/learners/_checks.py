"""Checks of hyperparameters that let traced values pass: inside a trace nothing can be said about their values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_nonnegative, finite_number, finite_positive, integer_at_least
from mesascope.specs import Number


def real_number(name: str, value: Any) -> Array:
    """The value as a real array without axes.

    Raises:
        TypeError, ValueError: for what is not a finite number.
    """
    return _checked(name, value, finite_number)


def nonnegative_number(name: str, value: Any) -> Array:
    """The value as a real array without axes, ≥ 0.

    Raises:
        TypeError, ValueError: for what is not a finite number ≥ 0.
    """
    return _checked(name, value, finite_nonnegative)


def positive_number(name: str, value: Any) -> Array:
    """The value as a real array without axes, > 0.

    Raises:
        TypeError, ValueError: for what is not a finite number > 0.
    """
    return _checked(name, value, finite_positive)


def whole_number(name: str, value: Any, least: int) -> int | Array:
    """The value as a Python int ≥ `least`: compiled programs know it, and may be differentiated in reverse mode.

    Traced integers pass: one compiled program then serves all of them.

    Raises:
        TypeError, ValueError: for what is not an integer ≥ `least`.
    """
    return integer_at_least(name, value, least) if concrete(value) else value


def matrix_or_diagonal(name: str, value: Any) -> Array:
    """The value as a finite square matrix, or as the diagonal of one.

    Raises:
        TypeError, ValueError: for anything else.
    """
    array = finite_array(name, value)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(f"{name} must be a square matrix or the diagonal of one, got shape {array.shape}")
    return array


def finite_array(name: str, value: Any) -> Array:
    """The value as a real or complex array with finite entries.

    Raises:
        TypeError: for something that is not an array of numbers.
        ValueError: for an entry that is not finite.
    """
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: not an array of numbers ({error})") from None
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        array = array.astype(float)
    if concrete(array) and not np.isfinite(np.asarray(array)).all():
        raise ValueError(f"{name}: every entry must be finite")
    return array


def concrete(*arrays: Array) -> bool:
    """Whether the values of all arrays are known, as they are not inside a trace."""
    return not any(isinstance(array, jax.core.Tracer) for array in arrays)


def _checked(name: str, value: Any, check: Any) -> Array:
    if not concrete(value):
        return value
    number: Number = check(name, np.asarray(value) if isinstance(value, Array) else value)
    # Not weakly typed: arrays as hyperparameters then share the programs that numbers compiled.
    return jnp.asarray(float(number), float)
