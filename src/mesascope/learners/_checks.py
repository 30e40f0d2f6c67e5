"""Checks of hyperparameters that let traced values pass: inside a trace nothing can be said about their values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Number, finite_nonnegative, finite_number, finite_positive


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


def _checked(name: str, value: Any, check: Any) -> Array:
    if isinstance(value, jax.core.Tracer):
        return value
    number: Number = check(name, np.asarray(value) if isinstance(value, Array) else value)
    return jnp.asarray(float(number))
