"""Normalizers ρ_t of linear attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mesascope.specs import show

Normalizer = str | Callable[[np.ndarray], np.ndarray]
"""`"t-1"` (the paper's), `"t"`, `"1"`, or any hashable function of an array of context lengths."""

_NAMED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "t-1": lambda t: t - 1.0,
    "t": lambda t: t * 1.0,
    "1": lambda t: np.ones_like(t, float),
}
NAMED_NORMALIZERS = tuple(_NAMED)
"""The names of the normalizers that have one."""


def check_normalizer(normalizer: Normalizer) -> Normalizer:
    """Return `normalizer` after checking that it is a normalizer.

    Raises:
        ValueError: for an unknown name.
        TypeError: for anything but a name or a hashable function.
    """
    if callable(normalizer):
        try:
            hash(normalizer)
        except TypeError:
            raise TypeError(
                f"normalizer: {show(normalizer)} is not hashable; use a plain function of t"
            ) from None
        return normalizer
    if not isinstance(normalizer, str):
        raise TypeError(
            f"normalizer: {show(normalizer)} is neither a name nor a function of the context length t"
        )
    if normalizer not in _NAMED:
        raise ValueError(
            f"normalizer: {show(normalizer)} is unknown; use one of {', '.join(_NAMED)} or a function of t"
        )
    return normalizer


def normalizer_values(normalizer: Normalizer, context_lengths: np.ndarray) -> np.ndarray:
    """Return ρ_t for an array of context lengths t ≥ 2, in float64.

    Raises:
        ValueError: ρ_t is not finite and positive, or not one number per context length.
    """
    lengths = np.asarray(context_lengths)
    values = _given(normalizer, lengths)
    _refuse(~(np.isfinite(values) & (values > 0)), values, lengths)
    return values


def normalizer_inverses(normalizer: Normalizer, context_lengths: np.ndarray) -> np.ndarray:
    """Return 1/ρ_t for an array of context lengths t ≥ 1, in float64.

    If ρ_1 = 0, as for "t-1", it is 0 at t = 1: attention gives 0 for a token without predecessors.

    Raises:
        ValueError: as `normalizer_values`.
    """
    lengths = np.asarray(context_lengths)
    values = _given(normalizer, lengths)
    positive = np.isfinite(values) & (values > 0)
    _refuse(~positive & ~((lengths == 1) & (values == 0)), values, lengths)
    return np.divide(1.0, values, out=np.zeros(lengths.shape), where=positive)


def _given(normalizer: Normalizer, lengths: np.ndarray) -> np.ndarray:
    rule = _NAMED[normalizer] if isinstance(normalizer, str) else normalizer
    given = np.asarray(rule(lengths), float)
    if given.shape not in ((), lengths.shape):
        raise ValueError(
            f"normalizer: must give one number, or one for each context length, got shape {given.shape} for {lengths.shape}"
        )
    return np.broadcast_to(given, lengths.shape)


def _refuse(wrong: np.ndarray, values: np.ndarray, lengths: np.ndarray) -> None:
    if wrong.any():
        first = lengths[wrong].flat[0]
        raise ValueError(
            f"normalizer: ρ_t must be finite and positive, but is {values[wrong].flat[0]} at t = {first}"
        )
