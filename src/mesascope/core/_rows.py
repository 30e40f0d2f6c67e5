"""Programs for any number of rows: JAX compiles one for every number, and flows save any number of points."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

Rows = TypeVar("Rows")
_CPU_BATCH = 16
_ACCELERATOR_BATCH = 4096


def padded(rows: Rows) -> tuple[Rows, int]:
    """Repeat the last of n rows until there are 2^k or 3·2^k.

    Args:
        rows: a tree whose floating-point and complex arrays have a first axis of length n ≥ 1.

    Returns:
        The longer tree, and n.

    Raises:
        ValueError: there are no such arrays, or their first axes differ.
    """
    weights, rest = eqx.partition(rows, eqx.is_inexact_array)
    lengths = {np.shape(one)[:1] for one in jax.tree.leaves(weights)}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        shown = ", ".join(str(np.shape(one)) for one in jax.tree.leaves(weights)) or "no weights"
        raise ValueError(
            f"models: weights must be stacked along a first axis of one length of at least 1, got {shown}"
        )
    ((count,),) = lengths
    places = np.minimum(np.arange(_rows(count)), count - 1)
    return eqx.combine(jax.tree.map(lambda one: np.asarray(one)[places], weights), rest), count


def _rows(count: int) -> int:
    """The least 2^k or 3·2^k that is at least `count`."""
    power = 1 << (count - 1).bit_length()
    return 3 * power // 4 if power >= 4 and 3 * power // 4 >= count else power


def map_rows(function: Any, rows: Any) -> Any:
    """Apply a function to each of 2^k or 3·2^k rows, in equal batches: a last batch of another length would be compiled too."""
    batch = len(jax.tree.leaves(rows)[0])
    while batch > (_CPU_BATCH if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH):
        batch //= 2
    return jax.lax.map(function, rows, batch_size=batch)
