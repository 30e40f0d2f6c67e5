"""Checks of weights and scales; the entries of traced values cannot be checked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_positive, random_key


def finite_array(name: str, value: Any, ndim: int) -> Array:
    """Return the value as a real or complex array with `ndim` axes and finite entries.

    Raises:
        TypeError: for something that is not an array of numbers.
        ValueError: for another number of axes, or an entry that is not finite.
    """
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: not an array of numbers ({error})") from None
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        array = array.astype(float)
    if array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} axes, got shape {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name}: every axis must have at least one entry, got shape {array.shape}")
    if not isinstance(array, jax.core.Tracer) and not np.isfinite(np.asarray(array)).all():
        raise ValueError(f"{name}: every entry must be finite")
    return array


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
    if isinstance(value, jax.core.Tracer):
        return value
    return float(finite_positive(name, np.asarray(value) if isinstance(value, Array) else value))


def gaussian_array(key: Array, shape: tuple[int, ...], scale: Any) -> Array:
    """Return an array of independent N(0, scale²) entries."""
    return scale * jax.random.normal(random_key(key), shape)
