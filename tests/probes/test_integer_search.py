"""The best integer is found exactly, wherever it is, without trying all."""

import pytest

from mesascope.probes._integer_search import best_integer


def _counted(cost):
    tried = []

    def counting(integer):
        tried.append(integer)
        return cost(integer)

    return counting, tried


@pytest.mark.parametrize("best", [1, 2, 5, 6, 7, 9, 13, 20, 37, 100, 127, 128])
def test_the_least_of_a_valley_is_found(best):
    cost, tried = _counted(lambda k: 1e-6 + abs(k - best))
    assert best_integer(cost, 128) == best
    assert len(tried) == len(set(tried)) <= 36


def test_of_equals_the_smallest_is_taken_and_little_is_tried():
    cost, tried = _counted(lambda k: 1.0 if k >= 3 else 2.0)
    assert best_integer(cost, 128) == 3
    assert max(tried) <= 6


def test_what_always_falls_ends_at_the_largest():
    assert best_integer(lambda k: 1 / k, 50) == 50
    assert best_integer(lambda k: 1 / k, 1) == 1


def test_infinite_costs_are_passed_over():
    assert best_integer(lambda k: float("inf") if k < 3 else k, 128) == 3
