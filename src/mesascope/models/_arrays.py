"""Checks of weights and scales; the entries of traced values cannot be checked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import concrete, finite_positive, random_key
from mesascope.core import finite_array as finite_array


def real_array(name: str, value: Any, ndim: int) -> Array:
    """Return the value as a real array with `ndim` axes and finite entries.

    Raises:
        TypeError, ValueError: as `finite_array`; TypeError for complex entries.
    """
    array = finite_array(name, value, ndim)
    if jnp.iscomplexobj(array):
        raise TypeError(f"{name}: must be real, got {array.dtype}")
    return array


def positive_number(name: str, value: Any) -> Any:
    """Return the value as a float > 0; a traced value is returned unchanged.

    Raises:
        TypeError, ValueError: for anything but a finite number greater than 0.
    """
    return float(finite_positive(name, value)) if concrete(value) else value


def gaussian_array(key: Array, shape: tuple[int, ...], scale: Any) -> Array:
    """Return an array of independent N(0, scale²) entries."""
    return scale * jax.random.normal(random_key(key), shape)
