"""Intervals for what claims sample, and verdicts by them: where an interval straddles a threshold, neither side is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from mesascope.records import Verdict


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


def between(interval: Sequence[float], least: float, most: float) -> Verdict:
    """Whether what an interval holds lies in [least, most].

    Verified when all of the interval does, refuted when none of it does (or an end is not a number), else inconclusive.
    """
    low, high = interval
    if least <= low and high <= most:
        return "verified"
    apart = high < least or low > most
    return "refuted" if apart or np.isnan(low) or np.isnan(high) else "inconclusive"


def above(interval: Sequence[float], threshold: float) -> Verdict:
    """`between` the threshold and infinity."""
    return between(interval, threshold, np.inf)


def below(interval: Sequence[float], threshold: float) -> Verdict:
    """`between` minus infinity and the threshold."""
    return between(interval, -np.inf, threshold)
