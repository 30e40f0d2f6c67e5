"""Intervals over tasks: the bootstrap, for everything that is a function of means over tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_RESAMPLES = 1000
_HIGHEST = 0.99  # five resamples in either tail


class Measured(NamedTuple):
    """A measurement with its interval over tasks: numbers, or arrays of one shape.

    Attributes:
        value: what was measured.
        low, high: the ends of the interval.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def bootstrapped(
    table: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Measured:
    """Percentile bootstrap over tasks: tasks are drawn again with replacement, 1000 times.

    Args:
        table: what is averaged, shape (tasks, k).
        statistic: means (…, k) → values (…, v); vectorized.
        level: of the interval, strictly between 0 and 1.
        seed: of the resampling; tables of equally many tasks are resampled alike under one seed.

    Returns:
        The statistic of the means, and the two ends of its interval; each of shape (v,).
    """
    check_level(level, len(table))
    value = statistic(table.mean(0))
    drawn = statistic(resampled_means(table, seed))
    # outwards to a value that was drawn: between an infinite one and another there is none
    low = np.quantile(drawn, (1 - level) / 2, axis=0, method="lower")
    return Measured(value, low, np.quantile(drawn, (1 + level) / 2, axis=0, method="higher"))


def resampled_means(table: np.ndarray, seed: int) -> np.ndarray:
    """Means over tasks drawn with replacement: (tasks, k) → (1000, k)."""
    tasks = len(table)
    counts = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), _RESAMPLES)
    return (counts / tasks) @ table


def check_level(level: float, tasks: int) -> None:
    """Refuse intervals that so few tasks cannot give.

    Raises:
        ValueError: for a level outside of (0, 1) or above 0.99, or fewer tasks than put one into either tail, or than 20.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}; write e.g. level=0.95")
    if level > _HIGHEST:
        raise ValueError(
            f"level must be at most {_HIGHEST}, which {_RESAMPLES} resamples can tell, got {level}; write e.g. level=0.95"
        )
    if level < 0.5:
        raise ValueError(
            f"level must be at least 0.5, got {level}: below, an interval says nothing; write level=0.95"
        )
    needed = max(20, int(np.ceil(round(2 / (1 - level), 9))))
    if tasks < needed:
        raise ValueError(
            f"tasks: an interval of level {level} needs at least {needed} tasks to be judged by, got {tasks}; "
            "take more tasks or a lower level"
        )


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Their quotient, with 0/0 = 0: nothing is off by nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.asarray(numerator) / np.asarray(denominator)
    return np.where(np.asarray(numerator) == 0, 0.0, quotient)
