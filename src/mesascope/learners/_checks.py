"""Checks of hyperparameters; traced values cannot be checked and are accepted."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from mesascope.core import (
    concrete,
    finite_array,
    finite_nonnegative,
    finite_number,
    finite_positive,
    integer_at_least,
)


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


def fraction(name: str, value: Any) -> Array:
    """Return a number in (0, 1] as a real array without axes.

    Raises:
        TypeError, ValueError: for anything else.
    """
    number = positive_number(name, value)
    if concrete(number) and number > 1:
        raise ValueError(f"{name} must be at most 1, got {number}; 1 means no forgetting")
    return number


def positive_noise(value: Any) -> Array:
    """Return a noise variance > 0 as a real array without axes.

    Raises:
        TypeError, ValueError: for anything else; for 0 with the fix.
    """
    if concrete(value) and not isinstance(value, bool) and jnp.ndim(value) == 0 and value == 0:
        raise ValueError(
            "noise_variance must be greater than 0: without noise no task explains the labels of another one; give a small "
            "one, such as 1e-6"
        )
    return positive_number("noise_variance", value)


def share(name: str, value: Any) -> Array:
    """Return a number from 0 to 1 as a real array without axes.

    Raises:
        TypeError, ValueError: for anything else.
    """
    array = nonnegative_number(name, value)
    if concrete(value) and array > 1:
        raise ValueError(f"{name} must be at most 1, got {value}")
    return array


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


def _checked(name: str, value: Any, check: Any) -> Array:
    if not concrete(value):
        return value
    # Not weakly typed, so that hyperparameters given as arrays and as numbers share compiled programs.
    return jnp.asarray(float(check(name, value)), float)
