"""Set partitions and the Möbius function of the partition lattice."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import factorial

Block = frozenset[int]
Partition = frozenset[Block]


@cache
def set_partitions(size: int) -> tuple[Partition, ...]:
    """Return all partitions of {0, …, size − 1} into non-empty blocks; their number is Bell(size)."""
    if size == 0:
        return (frozenset(),)
    last = size - 1
    found: list[Partition] = []
    for partition in set_partitions(last):
        found.append(partition | {frozenset({last})})
        for block in partition:
            found.append((partition - {block}) | {block | {last}})
    return tuple(found)


def refines(fine: Partition, coarse: Partition) -> bool:
    """Return whether every block of `fine` is a subset of a block of `coarse`."""
    return all(any(block <= larger for larger in coarse) for block in fine)


def moebius(fine: Partition, coarse: Partition) -> int:
    """Return μ(fine, coarse) = Π over blocks B of `coarse` of (−1)^{n_B − 1} (n_B − 1)!, n_B blocks of `fine` in B.

    It expresses a sum over *distinct* coordinates, one per block of `fine`, by free sums:
    Σ_{distinct} f = Σ_{coarse ≥ fine} μ(fine, coarse) Σ_{free, one index per block of coarse} f
    (Rota 1964, Proposition 3 of section 7).
    """
    product = 1
    for larger in coarse:
        parts = sum(block <= larger for block in fine)
        product *= (-1) ** (parts - 1) * factorial(parts - 1)
    return product


def subsets(size: int) -> tuple[Block, ...]:
    """Return all non-empty subsets of {0, …, size − 1}."""
    return tuple(frozenset(chosen) for n in range(1, size + 1) for chosen in combinations(range(size), n))
