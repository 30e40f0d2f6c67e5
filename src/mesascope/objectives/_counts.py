"""The number of summation indices that survive the average over the spectrum: exact counts for every context length.

Write s = t − 1, u = i − 1, u' = i' − 1. The reduced token e_i has two blocks, labelled 0 and 1: block β of
e_i is x_{i−β} = λ^{u−β} x_1 (entrywise) and vanishes for u < β because x_0 = 0. Every occurrence of a token
coordinate in the loss is a *slot* with a block label and an exponent of λ:

    |ŷ_t|²         conj P[k,α'p'] P[k,αp]  K[βq,γr] conj K[β'q',γ'r']      u, u' = 0 … s
        slots        p'       p       q       r      q'       r'
        exponents    α'−u'    u−α     β−u     s−γ    u'−β'    γ'−s
    conj x_{t+1} ŷ_t     P[k,αp]  K[βq,γr]                                 u = 0 … s
        slots        k        p       q       r
        exponents    −s−1     u−α     β−u     s−γ

For λ_j independent and uniform on the unit circle, slots that share a coordinate must have exponents that sum
to zero. Each of u, u', s enters once with + and once with −, so the conditions of a set partition say that
(u, u', s) is a flow with given divergence on a directed graph (blocks are vertices, indices are edges). Such
systems are totally unimodular: the number of solutions is a polynomial in s of degree at most 2 for all s above
the shifts, which are at most 3 in size. It is therefore determined exactly by a few small s, and
the cost of planning does not depend on the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ._partitions import Partition, set_partitions, subsets

STABLE_FROM = 6
"""From this s on, every count is its polynomial (the conditions change only at sums of at most five unit shifts)."""

_SLOTS = {"quadratic": 6, "cross": 4}
_LABELS = {"quadratic": 6, "cross": 3}


@dataclass(frozen=True)
class Counts:
    """Number of surviving index tuples for every partition of the slots and every choice of block labels.

    `table[π, labels, s − 1]` is the count for 1 ≤ s < STABLE_FROM, `polynomial[π, labels, k]` the integer
    coefficient of s^k from STABLE_FROM on. Labels are binary digits in the order (α', α, β, γ, β', γ') or (α,
    β, γ), first digit most significant.
    """

    partitions: tuple[Partition, ...]
    table: np.ndarray
    polynomial: np.ndarray

    def at(self, s: int) -> np.ndarray:
        """Return the counts at one s ≥ 1, shape (partitions, labels)."""
        if s < STABLE_FROM:
            return self.table[:, :, s - 1]
        return self.polynomial @ np.array([1, s, s * s])


def exponents(term: str, labels: np.ndarray, u: np.ndarray, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the exponents of λ of all slots, stacked on the first axis; `v` is u' (ignored by the cross term)."""
    if term == "quadratic":
        a2, a, b, c, b2, c2 = labels
        return np.stack(np.broadcast_arrays(a2 - v, u - a, b - u, s - c, v - b2, c2 - s))
    a, b, c = labels
    return np.stack(np.broadcast_arrays(-s - 1, u - a, b - u, s - c))


def in_range(term: str, labels: np.ndarray, u: np.ndarray, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return whether index tuples are summed over: u, u' ≤ s, and no block contains x_0 = 0."""
    if term == "quadratic":
        a2, a, b, _, b2, _ = labels
        return (u <= s) & (v <= s) & (u >= np.maximum(a, b)) & (v >= np.maximum(a2, b2))
    a, b, _ = labels
    return (u <= s) & (v == 0) & (u >= np.maximum(a, b))


def count_by_listing(term: str, largest: int) -> np.ndarray:
    """Return the counts for s = 1 … `largest` by listing all index tuples, shape (partitions, labels, largest)."""
    digits = _LABELS[term]
    codes = np.arange(2**digits)
    labels = np.stack([(codes >> (digits - 1 - i)) & 1 for i in range(digits)])[:, :, None, None, None]
    s = np.arange(1, largest + 1)[:, None, None]
    u = np.arange(largest + 1)[:, None]
    v = np.arange(largest + 1 if term == "quadratic" else 1)
    powers = exponents(term, labels, u, v, s)
    allowed = in_range(term, labels, u, v, s)
    cancels = {block: powers[list(block)].sum(0) == 0 for block in subsets(_SLOTS[term])}
    counts = []
    for partition in set_partitions(_SLOTS[term]):
        survives = allowed
        for block in partition:
            survives = survives & cancels[block]
        counts.append(survives.sum((-2, -1)))
    return np.stack(counts)


@cache
def counts(term: str) -> Counts:
    """Return the counts of one term (`"quadratic"` or `"cross"`) for all s; the same for all laws and dimensions."""
    listed = count_by_listing(term, STABLE_FROM + 2)
    first, second, third = (listed[:, :, STABLE_FROM - 1 + i] for i in range(3))
    curvature, odd = np.divmod(third - 2 * second + first, 2)
    assert not odd.any(), "a count is not a polynomial with integer coefficients"
    slope = second - first - curvature * (2 * STABLE_FROM + 1)
    constant = first - slope * STABLE_FROM - curvature * STABLE_FROM**2
    polynomial = np.stack([constant, slope, curvature], -1)
    return Counts(set_partitions(_SLOTS[term]), listed[:, :, : STABLE_FROM - 1], polynomial)
