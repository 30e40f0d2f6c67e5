"""Minima that a claim may be judged by: searches that came to their end, and the best of many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ._claim import UnsettledError


class Minimum(NamedTuple):
    """Where a search ended: the point, shape (n,), and the value there."""

    point: np.ndarray
    value: float


class Best(NamedTuple):
    """The least minimum of many searches.

    Attributes:
        point: shape (n,).
        value: there.
        reached: searches that ended at this value.
        starts: searches in all.
        values: where each of them ended, sorted; those that did not come to an end are left out.
    """

    point: np.ndarray
    value: float
    reached: int
    starts: int
    values: tuple[float, ...]


REACHED = 3  # starts that have to end at the best value, so that it is not found by chance


def best_of(search: Callable[[Any], Minimum], starts: Iterable[Any], nearness: float) -> Best:
    """The least minimum that a search finds from many starts, if at least three of them reach it.

    A single search may stop in a local minimum. That the best value is reached from several independent starts is evidence
    that no lower one was missed, though no proof.

    Args:
        search: from a start to the local minimum that it leads to.
        starts: independent of each other.
        nearness: largest relative distance between values that count as the same.

    Raises:
        UnsettledError: fewer than three starts reach the best value.
    """
    found: list[Minimum] = []
    count = 0
    for start in starts:
        count += 1
        with suppress(UnsettledError):  # an unfinished search reaches nothing
            found.append(search(start))
    found.sort(key=lambda one: one.value)
    values = tuple(one.value for one in found)
    reached = sum(one <= values[0] + nearness * abs(values[0]) for one in values)
    if reached < REACHED:
        best = f"the least value {values[0]:.6g}" if values else "an end"
        raise UnsettledError(f"{reached} of {count} searches reach {best}; {REACHED} have to")
    return Best(found[0].point, found[0].value, reached, count, values)


def minimized(
    function: Callable[[np.ndarray], tuple[Any, Any]],
    start: Any,
    largest_slope: float,
    *,
    method: Literal["BFGS", "L-BFGS-B"] = "BFGS",
    **options: Any,
) -> Minimum:
    """The local minimum that quasi-Newton descent finds.

    It is judged by the gradient where it stops and not by the status that it reports: where rounding hides further progress
    this is a failure.

    Args:
        function: from a point to its value and its gradient, as numbers and arrays of numpy or jax.
        start: shape (n,).
        largest_slope: most that an entry of the gradient may be at the end.
        method: the limited-memory form for many variables.
        **options: those of the method in `scipy.optimize.minimize`.

    Raises:
        UnsettledError: it stops where the gradient is larger, or is not a number.
    """

    def in_numpy(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = function(point)
        return float(value), np.asarray(slope, float)

    found = minimize(in_numpy, start, jac=True, method=method, options=options)
    slope = float(np.abs(found.jac).max())
    if not slope <= largest_slope:
        raise UnsettledError(
            f"{method} ended with a gradient of {slope:.1e}, above {largest_slope:.1e}: {found.message}"
        )
    return Minimum(np.asarray(found.x), float(found.fun))


def minimized_by_values(function: Callable[[np.ndarray], float], start: Any, **options: Any) -> Minimum:
    """The local minimum that Nelder and Mead's search finds, for few variables.

    Args:
        function: from a point to its value.
        start: shape (n,).
        **options: `xatol`, `fatol`, `maxiter` … of `scipy.optimize.minimize`.

    Raises:
        UnsettledError: it hits a limit before its simplex is as small as asked.
    """
    found = minimize(function, start, method="Nelder-Mead", options=options)
    if not (found.success and np.isfinite(found.fun)):
        raise UnsettledError(f"Nelder-Mead ended at {float(found.fun):.3g}: {found.message}")
    return Minimum(np.asarray(found.x), float(found.fun))
