r"""Expected losses of steps of preconditioned gradient descent as polynomials in traces of words.

With whitened inputs $\hat S = \frac1N \sum_i z_i z_i^\top$, $z_i \sim N(0, I)$, steps $M_1, \dots, M_L$ leave of the task

    Π = (I − M_L Ŝ) … (I − M_1 Ŝ) = I − G Ŝ,    E(ŷ − y)² = E tr Π P Πᵀ + (σ²/N) E tr G Ŝ Gᵀ + σ²,

$P$ the covariance of the whitened task. Expanded, both are sums of $E\, \mathrm{tr}\, B_1 \hat S B_2 \hat S \dots B_k \hat
S$. By Wick's theorem such a mean is a sum over the $(2k - 1)!!$ pairings of the $2k$ factors $z$: a pairing gives $N^{c - k}$,
with $c$ the connected groups of factors $\hat S$, times a product of traces of words in $B_j$ and $B_j^\top$. For $L$ layers
$k \le 2L$. Traces do not change when their word is rotated or transposed, so that most terms are equal: they are merged here,
once for every number of layers, and `_depth` only evaluates what is left.

A letter is a number: $2\ell$ for $M_\ell$, $2\ell + 1$ for $M_\ell^\top$, and the even number behind these for $P = P^\top$.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

MAX_DEPTH = 3
"""Steps whose pairings, (4L − 1)!!, are planned in less than a second; of four there are two million."""

Word: TypeAlias = tuple[int, ...]
Terms: TypeAlias = Counter[
    tuple[tuple[Word, ...], int]
]  # (traces that are multiplied, power of 1/N) → coefficient


class Polynomial(NamedTuple):
    """Σ_m Π_i traces[factors[m, i]] Σ_p coefficients[m, p] N^{−p}, where the last trace is 1.

    Attributes:
        factors: indices of traces, shape (monomials, most factors).
        coefficients: integers, shape (monomials, powers).
    """

    factors: np.ndarray
    coefficients: np.ndarray


class Plan(NamedTuple):
    """What of the loss depends on the weights, in units of twice the loss.

    Attributes:
        halves: words of at most four letters, every beginning of a word before it.
        pairs: indices in `halves` of the two parts of every word; −1 for an empty second part.
        task: E tr Π P Πᵀ − tr P.
        noise: (1/N) E tr G Ŝ Gᵀ.
    """

    halves: tuple[Word, ...]
    pairs: np.ndarray
    task: Polynomial
    noise: Polynomial


@lru_cache(maxsize=32)
def plan(order: tuple[int, ...]) -> Plan:
    """Return the plan of steps M_{order[0]}, M_{order[1]}, …: loops name a matrix more than once."""
    symmetric = 2 * (max(order) + 1)
    task, noise = _expanded(order, symmetric)
    words = sorted({word for terms in (task, noise) for traces, _ in terms for word in traces})
    parts = [(word[: (len(word) + 1) // 2], word[(len(word) + 1) // 2 :]) for word in words]
    begun = {part[: end + 1] for two in parts for part in two for end in range(len(part))}
    halves = tuple(sorted(begun, key=lambda word: (len(word), word)))
    place = {word: i for i, word in enumerate(halves)} | {(): -1}
    pairs = np.array([[place[part] for part in two] for two in parts])
    where = {word: i for i, word in enumerate(words)}
    return Plan(halves, pairs, _polynomial(task, where), _polynomial(noise, where))


def _expanded(order: Sequence[int], symmetric: int) -> tuple[Terms, Terms]:
    """The terms of Π P Πᵀ without P itself, and of G Ŝ Gᵀ/N: for every two subsets of the steps a chain of factors Ŝ."""
    task, noise = Counter[tuple[tuple[Word, ...], int]](), Counter[tuple[tuple[Word, ...], int]]()
    last_first = order[::-1]
    subsets = [chosen for count in range(len(order) + 1) for chosen in combinations(last_first, count)]
    for left in subsets:
        for right in subsets:
            sign = (-1) ** (len(left) + len(right))
            before: list[Word] = [(2 * step,) for step in left]
            after: list[Word] = [(2 * step + 1,) for step in reversed(right)]
            if left or right:
                _add(task, sign, [*before, (symmetric,), *after], symmetric, 0)
            if left and right:
                _add(noise, sign, [*before, *after], symmetric, 1)
    return task, noise


def _add(terms: Terms, sign: int, chain: list[Word], symmetric: int, power: int) -> None:
    """Add ± N^{−power} E tr B_1 Ŝ B_2 Ŝ … Ŝ B_k: the trace joins the last factor and the first."""
    factors = [chain[-1] + chain[0], *chain[1:-1]]
    count = len(chain) - 1
    for groups, loops in _pairings(count):
        traces = (
            sum((_transposed(factors[j], symmetric) if turned else factors[j] for j, turned in loop), ())
            for loop in loops
        )
        merged = tuple(sorted(_canonical(word, symmetric) for word in traces))
        terms[merged, count - groups + power] += sign


Loop: TypeAlias = tuple[tuple[int, bool], ...]  # the factors of one trace, and whether they are transposed


@lru_cache(maxsize=2 * MAX_DEPTH + 1)
def _pairings(count: int) -> list[tuple[int, tuple[Loop, ...]]]:
    """Every pairing of the vectors of `count` factors Ŝ in a cyclic chain: the number of groups, and the traces.

    Factor Ŝ_j stands between B_j and B_{j+1}; vector 2j of it meets B_j, vector 2j + 1 meets B_{j+1}.
    """
    found = []
    for pairs in _matchings(tuple(range(2 * count))):
        partner = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
        loops, left = [], set(range(count))
        while left:
            at, turned, loop = min(left), False, []
            while at in left:
                left.remove(at)
                loop.append((at, turned))
                met = partner[(2 * at - 1) % (2 * count) if turned else 2 * at]
                at, turned = (met // 2, True) if met % 2 == 0 else ((met // 2 + 1) % count, False)
            loops.append(tuple(loop))
        found.append((_groups(count, pairs), tuple(loops)))
    return found


def _matchings(vectors: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    if not vectors:
        yield ()
        return
    first, *others = vectors
    for i, other in enumerate(others):
        for rest in _matchings((*others[:i], *others[i + 1 :])):
            yield ((first, other), *rest)


def _groups(count: int, pairs: Sequence[tuple[int, int]]) -> int:
    """The number of connected groups of factors Ŝ, each of which shares one index of an example."""
    name = list(range(count))
    for a, b in pairs:
        old, new = name[a // 2], name[b // 2]
        name = [new if one == old else one for one in name]
    return len(set(name))


def _transposed(word: Word, symmetric: int) -> Word:
    return tuple(letter if letter == symmetric else letter ^ 1 for letter in reversed(word))


@lru_cache(maxsize=2**15)
def _canonical(word: Word, symmetric: int) -> Word:
    """The first in order of all rotations of a word and of its transpose."""
    both = (word, _transposed(word, symmetric))
    return min(one[i:] + one[:i] for one in both for i in range(len(word)))


def _polynomial(terms: Terms, where: dict[Word, int]) -> Polynomial:
    monomials = sorted({traces for (traces, _), value in terms.items() if value})
    most, powers = max(map(len, monomials)), 1 + max(power for _, power in terms)
    factors = np.full((len(monomials), most), len(where))
    coefficients = np.zeros((len(monomials), powers))
    for row, traces in enumerate(monomials):
        factors[row, : len(traces)] = [where[word] for word in traces]
        coefficients[row] = [terms[traces, power] for power in range(powers)]
    return Polynomial(factors, coefficients)
