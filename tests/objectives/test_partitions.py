"""Set partitions and Möbius inversion."""

import itertools
from math import prod

import numpy as np
import pytest

from mesascope.objectives._partitions import moebius, refines, set_partitions, subsets

BELL = [1, 1, 2, 5, 15, 52, 203, 877]
STIRLING = {4: [1, 7, 6, 1], 6: [1, 31, 90, 65, 15, 1]}


def labels(partition):
    """The block of every element."""
    size = sum(len(block) for block in partition)
    blocks = sorted(partition, key=min)
    return [next(n for n, block in enumerate(blocks) if element in block) for element in range(size)]


@pytest.mark.parametrize("size", range(8))
def test_partitions_are_counted_by_bell_numbers(size):
    partitions = set_partitions(size)
    assert len(partitions) == len(set(partitions)) == BELL[size]
    for partition in partitions:
        assert sorted(element for block in partition for element in block) == list(range(size))
        assert all(partition)


@pytest.mark.parametrize("size", STIRLING)
def test_partitions_into_k_blocks_are_counted_by_stirling_numbers(size):
    blocks = [len(partition) for partition in set_partitions(size)]
    assert [blocks.count(k + 1) for k in range(size)] == STIRLING[size]


def test_refinement_is_inclusion_of_equivalence_relations():
    def pairs(partition):
        return {(i, j) for block in partition for i in block for j in block}

    for fine, coarse in itertools.product(set_partitions(4), repeat=2):
        assert refines(fine, coarse) == (pairs(fine) <= pairs(coarse))


@pytest.mark.parametrize("size", [3, 4, 5])
def test_moebius_sums_to_zero_over_every_interval(size):
    partitions = set_partitions(size)
    for fine, coarse in itertools.product(partitions, repeat=2):
        if refines(fine, coarse):
            between = [p for p in partitions if refines(fine, p) and refines(p, coarse)]
            assert sum(moebius(fine, p) for p in between) == (fine == coarse)
            assert sum(moebius(p, coarse) for p in between) == (fine == coarse)


def test_moebius_sums_to_zero_below_every_coarse_partition_of_six_slots():
    partitions = set_partitions(6)
    for coarse in partitions:
        total = sum(moebius(fine, coarse) for fine in partitions if refines(fine, coarse))
        assert total == (len(coarse) == 6)


@pytest.mark.parametrize("slots", [3, 4])
def test_sums_over_distinct_coordinates_are_free_sums_with_moebius_signs(slots):
    """Σ_{distinct} f = Σ_{σ ≥ π} μ(π, σ) Σ_{free} f, for a random tensor f and every π."""
    dim = 4
    tensor = np.random.default_rng(slots).normal(size=(dim,) * slots)
    for fine in set_partitions(slots):
        place = labels(fine)
        distinct = sum(
            tensor[tuple(chosen[n] for n in place)]
            for chosen in itertools.product(range(dim), repeat=len(fine))
            if len(set(chosen)) == len(chosen)
        )
        free = 0.0
        for coarse in set_partitions(slots):
            if refines(fine, coarse):
                position = labels(coarse)
                free += moebius(fine, coarse) * sum(
                    tensor[tuple(chosen[n] for n in position)]
                    for chosen in itertools.product(range(dim), repeat=len(coarse))
                )
        # at most 256 numbers of order one, six times: rounding far below 1e-12
        assert free == pytest.approx(distinct, abs=1e-12)


def test_distinct_coordinates_beyond_the_dimension_sum_to_zero():
    """With more blocks than coordinates there are no distinct coordinates, and the free sums must cancel."""
    dim, singles = 2, frozenset(frozenset({k}) for k in range(4))
    free = sum(moebius(singles, coarse) * dim ** len(coarse) for coarse in set_partitions(4))
    assert free == prod(dim - k for k in range(4)) == 0


def test_subsets_are_all_that_are_not_empty():
    found = subsets(6)
    assert len(found) == len(set(found)) == 2**6 - 1
    assert frozenset() not in found
