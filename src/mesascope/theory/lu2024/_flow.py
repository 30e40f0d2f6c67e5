"""Gradient flow of least squares along one eigenvector."""

from __future__ import annotations

import numpy as np

from mesascope.specs import show


def checked_times(times: np.ndarray | float) -> np.ndarray:
    """Return times from 0 to infinity as an array."""
    t = np.asarray(times)
    if not np.issubdtype(t.dtype, np.integer) and not np.issubdtype(t.dtype, np.floating):
        raise TypeError(f"times must be numbers, got {show(times)}")
    if not (t >= 0).all():
        raise ValueError(f"times must be at least 0, got {show(times)}")
    return t.astype(float)


def grown(rates: np.ndarray, times: np.ndarray | float) -> np.ndarray:
    """Return (1 − exp(−rt))/r, which is t at r = 0, shape (…, rates)."""
    t = checked_times(times)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rates == 0, t, -np.expm1(-rates * t) / rates)
