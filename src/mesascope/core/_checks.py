"""Checks of user input whose errors are one line: what is wrong, where, and the fix.

Parameters of laws and tasks are *exact numbers*: Python ints, floats (each float is a rational number) and
fractions. They are kept as given, so that equal inputs make equal, hashable objects, and converted to
`Fraction` when moments are computed.
"""

import math
import operator
from fractions import Fraction

import numpy as np

from ..specs import Number


def finite_number(name: str, value: object) -> Number:
    """Return `value` as a finite int, float or Fraction.

    Strings are read as exact rationals (`"1/3"`, `"0.1"`), numpy scalars become Python numbers.

    Args:
        name: the name of the number for the user; error messages begin with it.
        value: the number.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or is a string that is not a rational number.
    """
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{name}: {value!r} is not a rational number; write '1/3' or '0.25'") from None
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        kind = type(value).__name__
        raise TypeError(f"{name} must be a number (int, float, Fraction or a string like '1/3'), got {kind}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def finite_positive(name: str, value: object) -> Number:
    """Return `value` as a finite number greater than zero.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or not positive.
    """
    number = finite_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, got {number}")
    return number


def finite_nonnegative(name: str, value: object) -> Number:
    """Return `value` as a finite number greater than or equal to zero.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or negative.
    """
    number = finite_number(name, value)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}")
    return number


def integer_at_least(name: str, value: object, minimum: int) -> int:
    """Return `value` as a Python int not below `minimum`.

    Raises:
        TypeError: `value` is not an integer; bools, and floats such as 5.0, are refused too.
        ValueError: `value` is below `minimum`.
    """
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got the truth value {value}")
    try:
        integer = operator.index(value)  # type: ignore[arg-type]  # the TypeError below is the check
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}") from None
    if integer < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {integer}")
    return integer


def exact(value: Number) -> Fraction:
    """Return the rational number that `value` is (every finite float is one)."""
    return Fraction(value)
