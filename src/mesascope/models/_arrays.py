"""Weights: their fields, checks and draws; the entries of traced values cannot be checked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import concrete, finite_positive, random_key
from mesascope.core import finite_array as finite_array


def axes(ndim: int) -> dict[str, int]:
    """The metadata of a field for weights with `ndim` axes in a single model, for a tuple of such weights, or None."""
    return {"ndim": ndim}


def refuse_stacked(part: Any) -> None:
    """Refuse several models in one, stacked along a first axis of their weights: products would mix these.

    Raises:
        ValueError: says how to ask each of them.
    """
    for field in fields(part):
        value = getattr(part, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, eqx.Module):
                refuse_stacked(one)
            elif "ndim" in field.metadata and one is not None and jnp.ndim(one) > field.metadata["ndim"]:
                raise ValueError(
                    f"{type(part).__name__}: {field.name} has shape {jnp.shape(one)}: these are {len(one)} models, such as "
                    "the trajectory of a flow; ask each of them by jax.vmap(lambda model: …)(models), or take one of them by "
                    "jax.tree.map(lambda weights: weights[i], models)"
                )


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
