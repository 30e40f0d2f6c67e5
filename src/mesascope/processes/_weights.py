"""Weights of predictions as a user gives them: by mapping or as a list."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..core import finite_nonnegative
from ..specs import Number, show_number

Weights: TypeAlias = Mapping[int, Number | str] | Sequence[Number | str] | np.ndarray
Pairs: TypeAlias = tuple[tuple[int, Number], ...]


def checked_weights(what: str, lengths: range, check: Callable[[object], int], weights: Weights) -> Pairs:
    """Return the pairs (length, weight) with non-zero weight, sorted by length.

    Args:
        what: what a length is, in the singular, e.g. "context length".
        lengths: all lengths.
        check: returns a key of a mapping as one of the lengths, or raises.
        weights: a mapping from lengths to weights, or one weight for each length.

    Raises:
        TypeError: a weight or a length of the wrong type.
        ValueError: a wrong number of weights, an unknown length, a weight that is negative or not finite, or
            only zero weights.
    """
    if isinstance(weights, Mapping):
        given = {check(t): w for t, w in weights.items()}
    elif isinstance(weights, str) or not (isinstance(weights, Sequence) or np.ndim(weights) == 1):
        raise TypeError(
            f"weights must map {what}s to numbers or list {len(lengths)} numbers, got {weights!r}"
        )
    elif len(weights) != len(lengths):
        raise ValueError(
            f"weights must list one number for each {what} {lengths[0]} … {lengths[-1]}, "
            f"that is {len(lengths)}, got {len(weights)}"
        )
    else:
        given = dict(zip(lengths, weights, strict=True))
    pairs = tuple((t, finite_nonnegative(f"weight of {what} {t}", given[t])) for t in sorted(given))
    nonzero = tuple((t, w) for t, w in pairs if w)
    if not nonzero:
        raise ValueError("all weights are zero, so nothing is to be learned: make at least one positive")
    return nonzero


def show_weights(pairs: Pairs) -> str:
    """Return e.g. `w_99=1`, or how many there are if they are more than three."""
    return (
        f"{len(pairs)} weights" if len(pairs) > 3 else ", ".join(f"w_{t}={show_number(w)}" for t, w in pairs)
    )
