"""Intervals for what claims sample, and decisions by them: where an interval straddles a threshold, neither side is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from mesascope.records import Decision

from ._claim import UnsettledError

FEWEST = 5
"""Seeds, or other independent numbers, that an interval needs to decide anything."""


def mean_interval(values: Any, level: float = 0.95) -> tuple[float, list[float]]:
    """The mean of independent numbers and its two-sided interval by Student's t, for seeds as for sequences.

    Args:
        values: shape (n,).
        level: strictly between 0 and 1.

    Raises:
        UnsettledError: there are fewer than five numbers: intervals of so few decide nothing.
    """
    found = np.asarray(values, float)
    if len(found) < FEWEST:
        raise UnsettledError(f"an interval of {len(found)} numbers decides nothing; {FEWEST} are needed")
    error = float(found.std(ddof=1)) / len(found) ** 0.5
    half = float(scipy.stats.t.ppf((1 + level) / 2, len(found) - 1)) * error
    center = float(found.mean())
    return center, [center - half, center + half]


def median_interval(values: Any, level: float = 0.95) -> tuple[float, list[float]]:
    """The median of independent numbers, and the narrowest pair of order statistics around it that has at least the level.

    The interval [x_(k), x_(n+1−k)] holds the median with probability 1 − 2 P(B < k), B binomial with n tries of ½, for every
    distribution: also where rare numbers are so large that they decide the mean.

    Args:
        values: shape (n,).
        level: strictly between 0 and 1.

    Raises:
        UnsettledError: there are so few numbers that not even all of them have the level.
    """
    found = np.sort(np.asarray(values, float))
    count = len(found)
    ranks = [k for k in range(1, count // 2 + 1) if 1 - 2 * scipy.stats.binom.cdf(k - 1, count, 0.5) >= level]
    if not ranks:
        raise UnsettledError(f"the median of {count} numbers has no interval of level {level}; take more")
    return float(np.median(found)), [float(found[ranks[-1] - 1]), float(found[-ranks[-1]])]


def mean_intervals(values: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """`mean_interval` of several numbers: name → mean, and name → interval."""
    found = {name: mean_interval(one) for name, one in values.items()}
    return {name: mean for name, (mean, _) in found.items()}, {
        name: ends for name, (_, ends) in found.items()
    }


def between(interval: Sequence[float], least: float, most: float) -> Decision:
    """Whether what an interval holds lies in [least, most].

    Met when all of the interval does, not met when none of it does (or an end is not a number), else undecided.
    """
    low, high = interval
    if least <= low and high <= most:
        return "met"
    outside = high < least or low > most
    return "not met" if outside or np.isnan(low) or np.isnan(high) else "undecided"


def above(interval: Sequence[float], threshold: float) -> Decision:
    """`between` the threshold and infinity."""
    return between(interval, threshold, np.inf)


def below(interval: Sequence[float], threshold: float) -> Decision:
    """`between` minus infinity and the threshold."""
    return between(interval, -np.inf, threshold)
