"""The best integer is found exactly, without trying all."""

import pytest

from mesascope.probes._integer_search import best_integer


def _counted(cost):
    tried = []

    def counting(integer):
        tried.append(integer)
        return cost(integer)

    return counting, tried


@pytest.mark.parametrize("best", [1, 2, 5, 6, 7, 9, 13, 20, 37, 100, 127, 128])
def test_minima_are_found(best):
    cost, tried = _counted(lambda k: 1e-6 + abs(k - best))
    assert best_integer(cost, 128) == best
    assert len(tried) == len(set(tried)) <= 36


def test_of_equal_costs_the_smallest_integer_is_taken_with_few_trials():
    cost, tried = _counted(lambda k: 1.0 if k >= 3 else 2.0)
    assert best_integer(cost, 128) == 3
    assert max(tried) <= 6


@pytest.mark.parametrize(("first", "most"), [(1, 2), (5, 6), (17, 30)])
def test_the_search_ends_one_integer_after_an_exact_one(first, most):
    cost, tried = _counted(lambda k: 1e-30 / k if k >= first else 0.5**k)
    assert best_integer(cost, 128, exact=1e-24) == first
    assert first < max(tried) <= most


def test_of_few_integers_all_are_tried():
    """The cost of mini-batches of 2 … 5 examples exceeds that of 1 where 6 are right."""
    cost, tried = _counted(lambda k: {1: 0.9, 6: 0.1}.get(k, 1.0))
    assert best_integer(cost, 16) == 6
    assert sorted(tried) == list(range(1, 17))


def test_decreasing_costs_give_the_largest_integer():
    assert best_integer(lambda k: 1 / k, 50) == 50
    assert best_integer(lambda k: 1 / k, 1) == 1


def test_infinite_costs_are_skipped():
    assert best_integer(lambda k: float("inf") if k < 3 else k, 128) == 3
