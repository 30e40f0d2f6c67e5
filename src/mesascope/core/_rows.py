"""Programs for any number of rows: JAX compiles one for every number, and flows save any number of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

_CPU_BATCH, _CPU_PIECE = 16, 128
_ACCELERATOR_BATCH = 4096


def over_rows(function: Callable[[Any], Any], rows: Any) -> Any:
    """Apply a function to n rows: to pieces of one length, or to 2^k or 3·2^k of them if there are fewer.

    Args:
        function: of a tree like `rows`, to arrays whose first axis has one entry for each row; JAX compiles it for few lengths.
        rows: a tree whose floating-point and complex arrays have a first axis of length n ≥ 1; the rest is passed as it is.

    Returns:
        Arrays of NumPy, with n entries along their first axis.

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
    weights = jax.tree.map(np.asarray, weights)
    longest = _CPU_PIECE if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH
    length = min(_few(count), longest)
    found = []
    for begin in range(0, count, length):
        places = np.minimum(np.arange(begin, begin + length), count - 1)  # the last row is repeated
        piece = jax.tree.map(lambda one, places=places: one[places], weights)
        found.append(jax.device_get(function(eqx.combine(piece, rest))))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *found)


def map_rows(function: Callable[[Any], Any], rows: Any) -> Any:
    """Apply a function to each of 2^k or 3·2^k rows, in equal batches: a last batch of another length would be compiled too."""
    batch = len(jax.tree.leaves(rows)[0])
    while batch > (_CPU_BATCH if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH):
        batch //= 2
    return jax.lax.map(function, rows, batch_size=batch)


def _few(count: int) -> int:
    """The least 2^k or 3·2^k that is at least `count`."""
    power = 1 << (count - 1).bit_length()
    return 3 * power // 4 if power >= 4 and 3 * power // 4 >= count else power
