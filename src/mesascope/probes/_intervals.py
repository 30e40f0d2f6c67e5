"""Bootstrap intervals over tasks for functions of means over tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import finite_number
from mesascope.specs import show

_RESAMPLES = 1000
_MAX_LEVEL = 0.99  # five resamples in either tail


class Measured(NamedTuple):
    """A measurement with its interval over tasks: numbers, or arrays of one shape.

    Attributes:
        value: the measured value.
        low, high: the ends of the interval.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, place: Any) -> Measured:
        """Return the entry or entries of the measurement at an index."""
        return Measured(*(end[place] for end in self))

    def shaped(self, *shape: int) -> Measured:
        """Return the same entries in another shape."""
        return Measured(*(end.reshape(shape) for end in self))

    def split(self, cuts: int | Sequence[int] | np.ndarray) -> list[Measured]:
        """Return the measurement in parts, as `numpy.split` cuts the last axis."""
        return [Measured(*ends) for ends in zip(*(np.split(end, cuts, -1) for end in self), strict=True)]


def bootstrapped(
    table: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], *, level: float = 0.95, seed: int = 0
) -> Measured:
    """Return a statistic with its percentile bootstrap interval: tasks are resampled with replacement 1000 times.

    Args:
        table: the values that are averaged, shape (tasks, k).
        statistic: means (…, k) → values (…, v); vectorized.
        level: confidence level, strictly between 0 and 1.
        seed: seed of the resampling; tables of equally many tasks have the same resamples for one seed.

    Returns:
        The statistic of the means, and the two ends of its interval; each of shape (v,).
    """
    check_level(level, len(table))
    value = statistic(table.mean(0))
    drawn = statistic(resampled_means(table, seed))
    # quantiles are resampled values, since interpolation with an infinite value is impossible
    low = np.quantile(drawn, (1 - level) / 2, axis=0, method="lower")
    return Measured(value, low, np.quantile(drawn, (1 + level) / 2, axis=0, method="higher"))


def resampled_means(table: np.ndarray, seed: int) -> np.ndarray:
    """Return means over tasks resampled with replacement: (tasks, k) → (1000, k)."""
    tasks = len(table)
    counts = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), _RESAMPLES)
    return (counts / tasks) @ table


def check_level(level: float, tasks: int) -> None:
    """Refuse intervals for which there are too few tasks.

    Raises:
        ValueError: for a level outside (0, 1), below 0.5 or above 0.99, or fewer than 20 tasks or than one task per tail.
    """
    level = float(finite_number("level", level))
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {show(level)}; write e.g. level=0.95")
    if level > _MAX_LEVEL:
        raise ValueError(
            f"level must be at most {_MAX_LEVEL}, the limit for {_RESAMPLES} resamples, got {level}; write e.g. level=0.95"
        )
    if level < 0.5:
        raise ValueError(f"level must be at least 0.5, got {level}; write level=0.95")
    needed = max(20, int(np.ceil(round(2 / (1 - level), 9))))
    if tasks < needed:
        raise ValueError(
            f"tasks: an interval of level {level} needs at least {needed} tasks to be judged by, got {tasks}; "
            "take more tasks or a lower level"
        )


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the quotient, with 0/0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.asarray(numerator) / np.asarray(denominator)
    return np.where(np.asarray(numerator) == 0, 0.0, quotient)
