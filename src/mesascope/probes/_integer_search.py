"""The best integer of a cost that falls and then rises or rests: one by one, then in growing strides, then halving."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

_ONE_BY_ONE = 16  # few steps of other numbers differ much, and not evenly; many hardly do
_PAYS = 0.98  # a further integer pays off if it leaves less than this share of the cost
_TIED = 1e-6  # relative gain below which the smaller integer is as good


def best_integer(cost: Callable[[int], float], largest: int) -> int:
    """The integer in 1 … largest of least cost; of equals the smallest.

    It rises from 1, from 16 on by thirds, until a third of all integers so far brought nearly nothing, and then halves the
    gaps beside the best until its neighbours were tried.

    Args:
        cost: may be infinite; is called once for every integer that is tried.
        largest: ≥ 1.
    """
    costs: dict[int, float] = {}
    paid, integer = 0, 1
    while True:
        costs[integer] = cost(integer)
        if paid == 0 or costs[integer] < _PAYS * costs[paid]:
            paid = integer
        if integer >= largest or integer - paid >= max(3, integer // 3):
            break
        integer = min(integer + 1 if integer < _ONE_BY_ONE else -(-4 * integer // 3), largest)
    while new := _between(_best(costs), sorted(costs)):
        costs |= {integer: cost(integer) for integer in new}
    return _best(costs)


def _best(costs: dict[int, float]) -> int:
    least = min(costs.values())
    return min(integer for integer, cost in costs.items() if cost <= least * (1 + _TIED))


def _between(best: int, tried: list[int]) -> list[int]:
    """The middles of the gaps on both sides of the best."""
    place = tried.index(best)
    beside = tried[max(place - 1, 0) : place + 2]
    return [(low + high) // 2 for low, high in pairwise(beside) if high - low > 1]
