"""Probabilities that sum to one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..core import exact
from ..specs import Number, SpecError

SUM_TOLERANCE = 1e-12
"""The sum of floats such as 0.1 + 0.2 + 0.7 may differ from 1 by rounding."""


def require_sum_one(probabilities: Sequence[Number], *path: str | int) -> None:
    """Refuse numbers whose sum is not 1: exactly if they are exact, within 1e-12 if some are floats."""
    total = sum((exact(p) for p in probabilities), Fraction(0))
    tolerance = SUM_TOLERANCE if any(isinstance(p, float) for p in probabilities) else 0.0
    if abs(float(total - 1)) > tolerance:
        raise SpecError(f"must sum to 1, not {float(total)}; write rationals as strings: '1/3'", *path)
