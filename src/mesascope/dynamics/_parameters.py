"""Models as real vectors, the coordinates in which flows, descents and roots are computed; stacks of models.

Complex weights become their real and imaginary parts: in these coordinates the gradient of a real loss is the direction
of ascent, and every solver is right (`jax.grad` in a complex weight gives its conjugate, and implicit ODE solvers are
wrong on complex states).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import LinearAttention
from mesascope.specs import show

Model = TypeVar("Model", bound=eqx.Module)
Tree = TypeVar("Tree")


def check_has_weights(weights: Any, model: Any) -> None:
    """Refuse a model without weights.

    Raises:
        TypeError: there are none, or all of them are empty.
    """
    if not any(leaf.size for leaf in jax.tree.leaves(weights)):
        raise TypeError(
            f"model: must be a model with floating-point weights: arrays in the fields of an eqx.Module; got {show(model)}"
        )


def real_vector(model: Model) -> tuple[Array, Callable[[Any], Model]]:
    """All weights as one real vector, and the function that rebuilds the model.

    Args:
        model: any module; every floating-point or complex array in it counts as a weight.

    Returns:
        The vector (n,) and a function from such vectors, shape (…, n), to models whose weights have the same
        leading axes.

    Raises:
        TypeError: for something without weights.
    """
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    check_has_weights(weights, model)
    leaves, structure = jax.tree.flatten(weights)
    flat = [_numpy_unless_traced(part).reshape(-1) for leaf in leaves for part in _parts(leaf)]

    def rebuild(values: Any) -> Model:
        lead, at, built = values.shape[:-1], 0, []
        for leaf in leaves:
            pieces = []
            for _ in _parts(leaf):
                pieces.append(values[..., at : at + leaf.size].reshape((*lead, *leaf.shape)))
                at += leaf.size
            built.append(_placed(pieces[0] + 1j * pieces[1] if len(pieces) == 2 else pieces[0]))
        return eqx.combine(jax.tree.unflatten(structure, built), rest)

    traced = any(isinstance(part, jax.core.Tracer) for part in flat)
    return (jnp if traced else np).concatenate(flat), rebuild


def _parts(leaf: Any) -> tuple[Any, ...]:
    return (leaf.real, leaf.imag) if np.iscomplexobj(leaf) else (leaf,)


def _placed(values: Any) -> Any:
    """Return an array of jax; `jnp.asarray` would compile for every shape, and paths have any length."""
    return jnp.asarray(values) if isinstance(values, jax.core.Tracer) else jax.device_put(values)


def _numpy_unless_traced(values: Any) -> Any:
    """Return an array of numpy outside of a trace, where every jax operation would be compiled separately."""
    return values if isinstance(values, jax.core.Tracer) else np.asarray(values)


def in_state_precision(model: Model, precision: str) -> Model:
    """The model with its weights in float64, or float32 for all other precisions."""
    real, both = ("float64", "complex128") if precision == "float64" else ("float32", "complex64")

    def one(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return jnp.asarray(np.asarray(leaf, both if jnp.iscomplexobj(leaf) else real))

    return jax.tree.map(one, model)


def refuse_weights_not_finite(model: Any) -> None:
    """Refuse a model with a weight that is not finite.

    Raises:
        ValueError: names the array.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array)):
        if not np.isfinite(np.asarray(leaf)).all():
            name = jax.tree_util.keystr(path)
            raise ValueError(
                f"model{name}: must be finite at the start, but holds NaN or infinity; draw or load it again"
            )


SMALLEST = 1e-280
"""Size of a weight matrix above which local errors of flows, some 1e-15 of it, are numbers of full double precision."""


def refuse_weights_too_small(model: Any, stacked: int = 0) -> None:
    """Refuse the start of a flow with a weight matrix that is neither 0 nor of size `SMALLEST` (its largest entry).

    Args:
        model: the start.
        stacked: leading axes of its weights: for every index of them there is a start.

    Raises:
        ValueError: names the array.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array)):
        values = np.abs(np.asarray(leaf))
        sizes = np.atleast_1d(values.max(tuple(range(stacked, values.ndim)), initial=0.0))
        small = sizes[(sizes > 0) & (sizes < SMALLEST)]
        if small.size:
            raise ValueError(
                f"model{jax.tree_util.keystr(path)}: its largest entry is {small[0]:.3g}, too small for a flow in double "
                f"precision; start from 0, or from at least {SMALLEST:g}"
            )


Mask = str | eqx.Module
"""`"off-diagonal"`, or a model whose weights are 1 where the gradient passes and 0 where it is masked."""


def mask_vector(model: Any, mask: Mask | None) -> Array:
    """The mask in the coordinates of `real_vector`: 1 where the gradient passes.

    `"off-diagonal"` masks every entry off the diagonals of the d × d blocks (zheng2024, Theorem 4.3).

    Raises:
        ValueError: for an unknown name, or a mask that is not shaped like the model or not made of 0 and 1.
        TypeError: for `"off-diagonal"` on a model other than `LinearAttention`.
    """
    if mask is None:
        return jax.device_put(np.ones_like(real_vector(model)[0]))
    if isinstance(mask, str):
        if mask != "off-diagonal":
            raise ValueError(
                f"mask: {show(mask)} is unknown; use 'off-diagonal' or a model of zeros and ones"
            )
        if not isinstance(model, LinearAttention):
            raise TypeError(f"mask: 'off-diagonal' is for LinearAttention, not {type(model).__name__}")
        block = np.eye(model.dim)
        mask = LinearAttention(np.tile(block, (2, 2)), np.tile(block, (1, 2)), model.normalizer)
    if not isinstance(mask, type(model)):
        raise TypeError(
            f"mask: must be 'off-diagonal' or a {type(model).__name__} of zeros and ones, got {show(mask)}"
        )
    given, expected = (jax.tree.leaves(eqx.filter(m, eqx.is_inexact_array)) for m in (mask, model))
    if [np.shape(a) for a in given] != [np.shape(b) for b in expected]:
        raise ValueError(f"mask: must be shaped like the model, {[np.shape(b) for b in expected]}")
    pairs = zip(given, expected, strict=True)
    values = np.concatenate([np.real(m).reshape(-1) for m, w in pairs for _ in _parts(w)])
    if not np.isin(values, (0, 1)).all():
        raise ValueError("mask: every entry must be 0 (masked) or 1 (trained)")
    return jax.device_put(values.astype(real_vector(model)[0].dtype))


def by_structure(trees: Sequence[Any]) -> list[list[int]]:
    """The places of trees of equal structure, which differ in numbers only, group by group."""
    groups: dict[Any, list[int]] = {}
    for place, tree in enumerate(trees):
        leaves, structure = jax.tree.flatten(tree)
        kinds = tuple((leaf.shape, str(leaf.dtype)) if hasattr(leaf, "dtype") else leaf for leaf in leaves)
        groups.setdefault((structure, kinds), []).append(place)
    return list(groups.values())


def stacked(trees: Sequence[Tree]) -> Tree:
    """Stack trees of equal structure, with their arrays along a new first axis."""
    return jax.tree.map(_stack, *trees)


def _stack(*leaves: Any) -> Any:
    if not hasattr(leaves[0], "dtype"):
        return leaves[0]
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return np.stack([np.asarray(leaf) for leaf in leaves])
