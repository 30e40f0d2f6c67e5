"""Set partitions and the Möbius function of the partition lattice."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import factorial

Block = frozenset[int]
Partition = frozenset[Block]


@cache
def set_partitions(size: int) -> tuple[Partition, ...]:
    """All partitions of {0, …, size − 1} into non-empty blocks (Bell(size) of them)."""
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
    """Whether every block of `fine` lies inside a block of `coarse`."""
    return all(any(block <= whole for whole in coarse) for block in fine)


def moebius(fine: Partition, coarse: Partition) -> int:
    """μ(fine, coarse) = Π over blocks B of `coarse` of (−1)^{n_B − 1} (n_B − 1)!, n_B blocks of `fine` in B.

    It turns a sum over *distinct* coordinates, one per block of `fine`, into free sums:
    Σ_{distinct} f = Σ_{coarse ≥ fine} μ(fine, coarse) Σ_{free, one index per block of coarse} f
    (Rota 1964, Proposition 3 of section 7).
    """
    product = 1
    for whole in coarse:
        parts = sum(block <= whole for block in fine)
        product *= (-1) ** (parts - 1) * factorial(parts - 1)
    return product


def subsets(size: int) -> tuple[Block, ...]:
    """All non-empty subsets of {0, …, size − 1}."""
    return tuple(frozenset(chosen) for n in range(1, size + 1) for chosen in combinations(range(size), n))
