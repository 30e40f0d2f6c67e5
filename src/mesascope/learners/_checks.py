"""Checks of hyperparameters; traced values cannot be checked and are accepted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_nonnegative, finite_number, finite_positive, integer_at_least
from mesascope.specs import Number


def real_number(name: str, value: Any) -> Array:
    """Return a finite number as a real array without axes.

    Raises:
        TypeError, ValueError: for anything but a finite number.
    """
    return _checked(name, value, finite_number)


def nonnegative_number(name: str, value: Any) -> Array:
    """Return a finite number ≥ 0 as a real array without axes.

    Raises:
        TypeError, ValueError: for anything but a finite number ≥ 0.
    """
    return _checked(name, value, finite_nonnegative)


def positive_number(name: str, value: Any) -> Array:
    """Return a finite number > 0 as a real array without axes.

    Raises:
        TypeError, ValueError: for anything but a finite number > 0.
    """
    return _checked(name, value, finite_positive)


def checked_integer(name: str, value: Any, minimum: int) -> int | Array:
    """Return an integer ≥ `minimum` as a Python int, a constant of compiled programs, which allows reverse-mode derivatives.

    Traced integers are returned unchanged: one compiled program is then used for all integers.

    Raises:
        TypeError, ValueError: for anything but an integer ≥ `minimum`.
    """
    return integer_at_least(name, value, minimum) if concrete(value) else value


def matrix_or_diagonal(name: str, value: Any) -> Array:
    """Return a finite square matrix, or the diagonal of one.

    Raises:
        TypeError, ValueError: for anything else.
    """
    array = finite_array(name, value)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(f"{name} must be a square matrix or the diagonal of one, got shape {array.shape}")
    return array


def finite_array(name: str, value: Any) -> Array:
    """Return the value as a real or complex array with finite entries.

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
    """Return whether the values of all arrays are known, i.e. none of them is traced."""
    return not any(isinstance(array, jax.core.Tracer) for array in arrays)


def _checked(name: str, value: Any, check: Any) -> Array:
    if not concrete(value):
        return value
    number: Number = check(name, np.asarray(value) if isinstance(value, Array) else value)
    # Not weakly typed, so that hyperparameters given as arrays and as numbers share compiled programs.
    return jnp.asarray(float(number), float)
