"""Optima that a claim may be judged by: of searches that came to their end, the best of many, and those inside of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

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
        points: where those that reached the best value ended, each of shape (n,): they may be different minima.
    """

    point: np.ndarray
    value: float
    reached: int
    starts: int
    values: tuple[float, ...]
    points: tuple[np.ndarray, ...]


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
    points = tuple(one.point for one in found[:reached])
    return Best(found[0].point, found[0].value, reached, count, values, points)


def inside(values: Any) -> tuple[int, ...]:
    """Where a table over a grid is least, if that is no end of the grid: beyond an end lower values may lie.

    Args:
        values: one axis for every number of the grid.

    Raises:
        UnsettledError: it is at an end, or a value is not a number.
    """
    found = np.asarray(values, float)
    place = tuple(map(int, np.unravel_index(found.argmin(), found.shape)))
    if not np.isfinite(found[place]) or any(
        one in (0, size - 1) for one, size in zip(place, found.shape, strict=True)
    ):
        raise UnsettledError(
            f"the least value of a grid, {found[place]:.6g}, is entry {place} of {found.shape}: at an end"
        )
    return place


def bracketed(loss: Callable[..., float], *grids: Sequence[float] | np.ndarray, halvings: int = 4) -> Minimum:
    """The minimum of a function of one or two numbers on a grid, and then between the neighbours of its best entry.

    Where the best entry is no end, a minimum lies in the cell around it. There the neighbours come nearer by halves, and the
    best of them is taken; so the search cannot leave the cell.

    Args:
        loss: of one number for each grid.
        *grids: ascending.
        halvings: of the distance to the neighbours.

    Raises:
        UnsettledError: as `inside`.
    """
    values = np.array([loss(*point) for point in product(*grids)]).reshape([len(grid) for grid in grids])
    place = inside(values)
    gaps = [np.diff(grid)[at - 1 : at + 1] for grid, at in zip(grids, place, strict=True)]
    best = tuple(grid[at] for grid, at in zip(grids, place, strict=True)), float(values[place])
    for halving in range(1, halvings + 1):
        near = [
            (one - low / 2**halving, one, one + high / 2**halving)
            for one, (low, high) in zip(best[0], gaps, strict=True)
        ]
        best = min(((point, loss(*point)) for point in product(*near)), key=lambda found: found[1])
    return Minimum(np.array(best[0], float), float(best[1]))


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

    found = scipy.optimize.minimize(in_numpy, start, jac=True, method=method, options=options)
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
    found = scipy.optimize.minimize(function, start, method="Nelder-Mead", options=options)
    if not (found.success and np.isfinite(found.fun)):
        raise UnsettledError(f"Nelder-Mead ended at {float(found.fun):.3g}: {found.message}")
    return Minimum(np.asarray(found.x), float(found.fun))
