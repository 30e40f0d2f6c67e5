"""Models as real vectors: the coordinates in which flows, descents and roots are computed.

Complex weights become their real and imaginary parts: in these coordinates the gradient of a real loss is the direction
of ascent, and every solver is right (`jax.grad` in a complex weight gives its conjugate, and implicit ODE solvers are
wrong on complex states).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from mesascope.models import LinearAttention

Model = TypeVar("Model", bound=eqx.Module)


def real_vector(model: Model) -> tuple[Array, Callable[[Array], Model]]:
    """All weights as one real vector, and the way back.

    Args:
        model: any module; every floating-point or complex array in it counts as a weight.

    Returns:
        The vector (n,) and a function from such vectors to models.
    """
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(weights)
    parts = [(leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,) for leaf in leaves]
    vector, unravel = ravel_pytree(parts)

    def rebuild(values: Array) -> Model:
        joined = [jax.lax.complex(*part) if len(part) == 2 else part[0] for part in unravel(values)]
        return eqx.combine(jax.tree.unflatten(structure, joined), rest)

    return vector, rebuild


Mask = str | eqx.Module
"""`"off-diagonal"`, or a model whose weights are 1 where the gradient passes and 0 where it is masked."""


def mask_vector(model: Any, mask: Mask | None) -> Array:
    """The mask in the coordinates of `real_vector`: 1 where the gradient passes.

    `"off-diagonal"` masks every entry off the diagonals of the d × d blocks (zheng2024, Theorem 4.3).

    Raises:
        ValueError: for an unknown name, or a mask that is not shaped like the model or not made of 0 and 1.
        TypeError: for `"off-diagonal"` on a model other than `LinearAttention`.
    """
    vector, _ = real_vector(model)
    if mask is None:
        return jnp.ones_like(vector)
    if isinstance(mask, str):
        if mask != "off-diagonal":
            raise ValueError(f"mask: {mask!r} is unknown; use 'off-diagonal' or a model of zeros and ones")
        if not isinstance(model, LinearAttention):
            raise TypeError(f"mask: 'off-diagonal' is for LinearAttention, not {type(model).__name__}")
        block = jnp.eye(model.dim)
        mask = LinearAttention(jnp.tile(block, (2, 2)), jnp.tile(block, (1, 2)), model.normalizer)
    given, expected = (jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (mask, model))
    if [jnp.shape(a) for a in given] != [jnp.shape(b) for b in expected]:
        raise ValueError(f"mask: must be shaped like the model, {[jnp.shape(b) for b in expected]}")
    parts = [
        (m.real, m.real) if jnp.iscomplexobj(w) else (m.real,) for m, w in zip(given, expected, strict=True)
    ]
    values = ravel_pytree(parts)[0].astype(vector.dtype)
    if not bool(jnp.all((values == 0) | (values == 1))):
        raise ValueError("mask: every entry must be 0 (masked) or 1 (trained)")
    return values
