"""Checks of what samplers return: shapes, types, and whether it depends on the random key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias
from weakref import WeakSet

import numpy as np

from ..specs import Component, is_ours, show

Numbers: TypeAlias = Literal["real numbers", "complex numbers", "integers"]
_KINDS: dict[Numbers, tuple[type[Any], ...]] = {
    "real numbers": (np.floating, np.integer),
    "complex numbers": (np.complexfloating,),
    "integers": (np.integer,),
}
_KEYS = (0, 0, 1, 2)
_known: WeakSet[type[Any]] = WeakSet()
"""Classes whose samples are known to depend on the key."""


def check_drawn(
    component: Component, sample: Callable[..., Any], drawn: Any, shape: tuple[int, ...], numbers: Numbers
) -> None:
    """Refuse a sample of another shape or type.

    Raises:
        ValueError: names the method, what it must return and what it returned.
    """
    import jax.numpy as jnp

    kind = getattr(drawn, "dtype", None)
    if (
        kind is not None
        and any(jnp.issubdtype(kind, one) for one in _KINDS[numbers])
        and drawn.shape == shape
    ):
        return
    got = show(drawn) if kind is None else f"{kind} of shape {tuple(drawn.shape)}"
    raise ValueError(f"{_method(component, sample)} must return {numbers} of shape {shape}, got {got}")


def check_key(component: Component, sample: Callable[..., Any], *sizes: Any) -> None:
    """Refuse a sampler from outside this package that does not depend on its key, or depends on something else.

    Deterministic samples, equal for all sequences or tokens, are accepted. Each class is checked once.

    Args:
        component: a law or process.
        sample: its method.
        *sizes: further arguments of the method, for a few samples.

    Raises:
        ValueError: two keys give the same samples, or one key gives different ones.
    """
    if is_ours(type(component)) or type(component) in _known:
        return
    import jax

    with jax.ensure_compile_time_eval():
        drawn = [jax.tree.map(np.asarray, sample(component, jax.random.key(seed), *sizes)) for seed in _KEYS]
    if not _equal(drawn[0], drawn[1]):
        raise ValueError(
            f"{_method(component, sample)} must draw the same sample from the same key; take all randomness from the key"
        )
    rows = jax.tree.map(lambda array: np.broadcast_to(array[:1], array.shape), drawn[0])
    if all(_equal(drawn[0], other) for other in drawn[2:]) and not _equal(drawn[0], rows):
        raise ValueError(
            f"{_method(component, sample)} must draw another sample from another key, but ignores it; use its argument key"
        )
    _known.add(type(component))


def _equal(one: Any, other: Any) -> bool:
    import jax

    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.inexact)) for a, b in pairs)


def _method(component: Component, sample: Callable[..., Any]) -> str:
    code = sample.__code__
    name = f"'{component.kind}'" if hasattr(component, "kind") else type(component).__name__
    place = "" if is_ours(type(component)) else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"sample of the {component.family} {name}{place}"
