"""Intervals for what claims sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student


def mean_interval(values: Any, level: float = 0.95) -> tuple[float, list[float]]:
    """The mean of independent numbers and its two-sided interval by Student's t, for few seeds as for many sequences.

    Args:
        values: at least two numbers, shape (n,).
        level: strictly between 0 and 1.
    """
    found = np.asarray(values, float)
    error = float(found.std(ddof=1)) / len(found) ** 0.5
    half = float(student.ppf((1 + level) / 2, len(found) - 1)) * error
    center = float(found.mean())
    return center, [center - half, center + half]
