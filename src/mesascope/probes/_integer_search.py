"""Minimization of a cost of an integer: of few all are tried, of many it first falls, then rises or is constant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

_ONE_BY_ONE = 16  # up to this integer all are tried, since costs differ most between small integers
_DECREASE = 0.98  # the ratio of costs below which a larger integer is an improvement
_TIED = 1e-6  # relative gain below which the smaller integer is preferred


def best_integer(cost: Callable[[int], float], largest: int, exact: float = 0.0) -> int:
    """Return the integer in 1 … largest with the smallest cost; of equal costs the smallest integer.

    If the largest is at most 16, all are tried, so that the cost may rise and fall. Otherwise integers increase from 1, above
    16 in steps of a third, until the last third gave almost no improvement; then the gaps next to the best integer are
    bisected until its neighbours were tried.

    Args:
        cost: the cost, possibly infinite; called once for every integer that is tried.
        largest: the largest integer, ≥ 1.
        exact: a cost that is rounding: smaller ones are equal to it, and one integer after the first such is the last tried.
    """
    costs: dict[int, float] = {}
    improved, integer = 0, 1
    while True:
        costs[integer] = cost(integer)
        if improved == 0 or (costs[integer] < _DECREASE * costs[improved] and costs[improved] > exact):
            improved = integer
        enough = max(3, integer // 3) if largest > _ONE_BY_ONE else largest
        enough = 1 if costs[improved] <= exact else enough
        if integer >= largest or integer - improved >= enough:
            break
        integer = min(integer + 1 if integer < _ONE_BY_ONE else -(-4 * integer // 3), largest)
    while new := _between(_best(costs, exact), sorted(costs)):
        costs |= {integer: cost(integer) for integer in new}
    return _best(costs, exact)


def _best(costs: dict[int, float], exact: float) -> int:
    tied = max(min(costs.values()) * (1 + _TIED), exact)
    return min(integer for integer, cost in costs.items() if cost <= tied)


def _between(best: int, tried: list[int]) -> list[int]:
    """Return the midpoints of the gaps on both sides of the best integer."""
    place = tried.index(best)
    neighbours = tried[max(place - 1, 0) : place + 2]
    return [(low + high) // 2 for low, high in pairwise(neighbours) if high - low > 1]
