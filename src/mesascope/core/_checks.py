"""Checks of numbers in arguments, by the rules of specifications; errors are one line: what is wrong, where, and the fix.

Parameters of laws and tasks are *exact numbers*: Python ints, floats (each float is a rational number) and
fractions. They are kept as given, so that equal inputs make equal, hashable objects, and converted to
`Fraction` when moments are computed.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from ..specs import Number, SpecError, SpecTypeError, integer, nonnegative, number, positive, show

_T = TypeVar("_T", bound=Number)


def finite_number(name: str, value: object) -> Number:
    """Return `value` as a finite int, float or Fraction.

    Strings are read as exact rationals (`"1/3"`, `"0.1"`), scalars of numpy and jax become Python numbers.

    Args:
        name: the name of the number for the user; error messages begin with it.
        value: the number.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or is a string that is not a rational number.
    """
    return _argument(name, number, value)


def finite_positive(name: str, value: object) -> Number:
    """Return `value` as a finite number greater than zero.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or not positive.
    """
    return _argument(name, positive, value)


def finite_nonnegative(name: str, value: object) -> Number:
    """Return `value` as a finite number greater than or equal to zero.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not finite, or negative.
    """
    return _argument(name, nonnegative, value)


def below_one(name: str, value: object) -> float:
    """Return `value` as a float greater than 0 and below 1: a relative tolerance, or a share.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: `value` is not between 0 and 1.
    """
    given = finite_positive(name, value)
    if given >= 1 or float(given) == 0:  # a whole number may be beyond double precision, a fraction below it
        raise ValueError(f"{name} must be greater than 0 and below 1, got {show(value)}")
    return float(given)


def integer_at_least(name: str, value: object, minimum: int) -> int:
    """Return `value` as a Python int not below `minimum`.

    Raises:
        TypeError: `value` is not an integer; bools, and floats such as 5.0, are refused too.
        ValueError: `value` is below `minimum`.
    """
    given = _argument(name, integer, value)
    if given < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {given}")
    return given


def exact(value: Number) -> Fraction:
    """Return the rational number that `value` is (every finite float is one)."""
    return Fraction(value)


def _argument(name: str, check: Callable[[Any], _T], value: object) -> _T:
    """Return `check(value)`; errors begin with the name of the argument."""
    try:
        return check(value)
    except SpecError as error:
        kind = TypeError if isinstance(error, SpecTypeError) else ValueError
        raise kind(f"{name} {error.what}") from None
