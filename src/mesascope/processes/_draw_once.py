"""Arrays that are drawn once and kept: tasks of a pool, prompts of a training set."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..specs import SpecError

MAX_NUMBERS = 2**28
"""Numbers that are kept, in double precision: 2 GiB."""


def draw_once(draw: Callable[[], Any], of: str, *path: str) -> Any:
    """Return what a function draws as NumPy arrays, in double precision: the same wherever it is first asked for.

    Args:
        draw: draws arrays with JAX; makes its keys itself, since the first use may be inside a trace.
        of: what is drawn, such as `16 tasks`, for the message.
        path: the field that gives its number.

    Raises:
        ValueError: more than 2 GiB.
    """
    import jax

    with jax.enable_x64(True):
        arrays = jax.tree.leaves(jax.eval_shape(draw))
        require_room(of, sum(prod(one.shape) * one.dtype.itemsize for one in arrays), *path)
        with jax.ensure_compile_time_eval():  # the first use may be inside a trace
            return jax.tree.map(np.asarray, draw())


def require_room(of: str, needed: int, *path: str) -> None:
    """Refuse arrays that need more bytes than are kept.

    Args:
        of: what they are, such as `16 tasks`.
        needed: their bytes.
        path: the field that gives their number.

    Raises:
        ValueError: more than 2 GiB.
    """
    if needed > 8 * MAX_NUMBERS:
        what = f"must take at most 2 GiB, {of} take {needed / 2**30:.1f}; give fewer"
        raise SpecError(what, *path)
