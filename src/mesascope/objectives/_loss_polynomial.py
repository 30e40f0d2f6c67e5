r"""The population loss of one linear attention layer on sequences as a polynomial with rational coefficients.

With $K = W^{KQ}$, $P = W^{PV}$ and $A = P^T P$ (all real)

    L = Σ M[i,j; k,l] A_ij K_k K_l − Σ m[p, k] P_p K_k + c,

where k and l are entries of K, p entries of P, i and j columns of P; the $A_{ij}$ are intermediate variables. Every
coefficient is a sum over the partitions of the slots (see `_counts`) by shared coordinates: the sum over context lengths of
w_t/ρ_t² times the number of index tuples that survive the average over the spectrum, times a moment of the initial token.
These sums and moments are rational numbers, so that nothing is rounded. It uses the same counts as the moment plan, but not
its contractions or its Möbius inversion: here, different blocks always have different coordinates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from mesascope.core import exact
from mesascope.models import Normalizer
from mesascope.processes import DiagonalUnitary, Law, NextToken

from ._counts import STABLE_FROM, Counts, counts
from ._engine import require_moments
from ._partitions import Partition
from ._polynomial import LossPolynomial, Products, Term

_LABELS = {"quadratic": 6, "cross": 3}
_MAX_HORIZON = 100_000  # the number of digits of sums of 1/s grows with the number of terms
_OFFSETS = {"t-1": 0, "t": 1}


def loss_polynomial(
    process: DiagonalUnitary, task: NextToken, normalizer: Normalizer = "t-1"
) -> LossPolynomial:
    """Return the population loss of `LinearAttention` on a process, with rational coefficients.

    Raises:
        TypeError: for another process.
        ValueError: for a law without the moments in the loss, a normalizer that is a function, or a horizon above 10⁵.
    """
    if not isinstance(process, DiagonalUnitary):
        raise TypeError(f"process: must be a DiagonalUnitary, got {type(process).__name__}")
    require_moments(process.law, process.dim)
    moment = _moments(process.law, process.dim)
    squared, single = (exact_schedule(task, normalizer, power) for power in (2, 1))
    half = fmpq(1, 2)
    quartic = _merge(
        (_quartic_key(process.dim, labels, at), half * c)
        for labels, at, c in _entries("quadratic", squared, process.dim, moment)
    )
    bilinear = _merge(
        (_bilinear_key(process.dim, labels, at), c)
        for labels, at, c in _entries("cross", single, process.dim, moment)
    )
    second = sum((moment({n: 2}) for n in range(process.dim)), fmpq(0))
    place = _Places(process.dim)
    return LossPolynomial(
        place.size,
        place.gram(),
        (
            *(Term((place.of_gram(i, j), k, l), c) for (i, j, k, l), c in quartic.items()),  # noqa: E741
            *(Term((place.of_value(p), k), -c) for (p, k), c in bilinear.items()),
        ),
        half * _rational(task.total_weight) * second,
    )


class _Places(NamedTuple):
    """The places of the variables: the entries of W^KQ (2d × 2d) row by row, those of W^PV (d × 2d), then A_ij, i ≤ j."""

    dim: int

    @property
    def size(self) -> int:
        return 6 * self.dim**2

    def of_value(self, entry: int) -> int:
        """That of an entry of P."""
        return 4 * self.dim**2 + entry

    def of_gram(self, i: int, j: int) -> int:
        """That of A_ij, i ≤ j."""
        return self.size + i * (4 * self.dim - i - 1) // 2 + j

    def gram(self) -> tuple[Products, ...]:
        """A = Pᵀ P."""
        width = 2 * self.dim
        rows = [
            range(self.of_value(width * row), self.of_value(width * (row + 1))) for row in range(self.dim)
        ]
        pairs = ((i, j) for i in range(width) for j in range(i, width))
        return tuple(tuple((row[i], row[j]) for row in rows) for i, j in pairs)


def exact_schedule(task: NextToken, normalizer: Normalizer, power: int) -> tuple[fmpq, ...]:
    r"""Return $f(1), \dots, f(5)$ and $\sum_{s \ge 6} f(s) s^k$, k = 0, 1, 2, with $f(s) = w_{s+1}/\rho_{s+1}^{power}$.

    With the table and the polynomial of a count N they give $\sum_t w_t/\rho_t^{power} N(t - 1)$.

    Raises:
        ValueError: the normalizer is a function, or the horizon is above 10⁵.
    """
    if not isinstance(normalizer, str):
        raise ValueError("rho: exact sums need one of 't-1', 't', '1'; a function gives rounded numbers")
    if task.horizon > _MAX_HORIZON:
        raise ValueError(
            f"horizon: rational numbers grow with it; exact sums allow at most {_MAX_HORIZON}, got {task.horizon}"
        )
    pairs = task.weights if task.weights is not None else [(t, 1) for t in range(2, task.horizon)]
    factors = [(t - 1, _rational(w) / _rho(normalizer, t) ** power) for t, w in pairs]
    head = [_sum([f for s, f in factors if s == k]) for k in range(1, STABLE_FROM)]
    tail = [_sum([f * s**k for s, f in factors if s >= STABLE_FROM]) for k in range(3)]
    return (*head, *tail)


def _rational(value: object) -> fmpq:
    """Return an int, float or fraction as a rational number of flint; a float is the rational number it represents."""
    fraction = exact(value)  # type: ignore[arg-type]  # ints, floats, fractions
    return fmpq(fraction.numerator, fraction.denominator)


def _rho(normalizer: str, t: int) -> fmpq:
    return fmpq(1) if normalizer == "1" else fmpq(t - 1 + _OFFSETS[normalizer])


def _sum(terms: Sequence[fmpq]) -> fmpq:
    """Return the sum, computed by halves, so that long numbers are added last."""
    if len(terms) < 2:
        return terms[0] if terms else fmpq(0)
    middle = len(terms) // 2
    return _sum(terms[:middle]) + _sum(terms[middle:])


def _entries(
    term: str, schedule: Sequence[fmpq], dim: int, moment: Callable[[dict[int, int]], fmpq]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], fmpq]]:
    """Yield labels, coordinates of all slots, and coefficient of every monomial, before equal monomials are merged."""
    table = counts(term)
    width = _LABELS[term]
    for place, partition in enumerate(table.partitions):
        blocks = sorted(partition, key=min)
        surviving = {
            labels: survivors
            for code in range(2**width)
            if (survivors := _survivors(table, place, code, schedule)) != 0
            for labels in [tuple(code >> (width - 1 - n) & 1 for n in range(width))]
        }
        if not surviving:
            continue
        for chosen in permutations(range(dim), len(blocks)):
            weight = moment(
                {coordinate: len(block) for coordinate, block in zip(chosen, blocks, strict=True)}
            )
            if weight == 0:
                continue
            at = _slots(partition, blocks, chosen)
            for labels, survivors in surviving.items():
                yield labels, at, survivors * weight


def _survivors(table: Counts, place: int, code: int, schedule: Sequence[fmpq]) -> fmpq:
    """Return Σ_t w_t/ρ_t^power N(t − 1) of one partition and one choice of labels."""
    numbers = np.concatenate([table.table[place, code], table.polynomial[place, code]])
    return sum((int(n) * f for n, f in zip(numbers, schedule, strict=True) if n), fmpq(0))


def _slots(partition: Partition, blocks: Sequence[frozenset[int]], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the coordinate of every slot."""
    where = {slot: chosen[n] for n, block in enumerate(blocks) for slot in block}
    return tuple(where[slot] for slot in range(sum(map(len, partition))))


def _quartic_key(dim: int, labels: tuple[int, ...], at: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the monomial of slots p', p, q, r, q', r' with labels α', α, β, γ, β', γ'."""
    left, right, row, column, row2, column2 = (label * dim + x for label, x in zip(labels, at, strict=True))
    i, j = sorted((left, right))
    k, l = sorted((2 * dim * row + column, 2 * dim * row2 + column2))  # noqa: E741
    return i, j, k, l


def _bilinear_key(dim: int, labels: tuple[int, ...], at: tuple[int, ...]) -> tuple[int, int]:
    """Return the monomial of slots k, p, q, r, of which the last three have labels α, β, γ."""
    output, *rest = at
    p, row, column = (label * dim + x for label, x in zip(labels, rest, strict=True))
    return 2 * dim * output + p, 2 * dim * row + column


def _merge(entries: Iterator[tuple[Any, fmpq]]) -> dict[Any, fmpq]:
    """Return the sums of the coefficients of equal monomials, without those that are 0."""
    found: dict[Any, fmpq] = defaultdict(lambda: fmpq(0))
    for key, c in entries:
        found[key] += c
    return {key: c for key, c in found.items() if c != 0}


def _moments(law: Law, dim: int) -> Callable[[dict[int, int]], fmpq]:
    """Return the function of orders that gives E Π_n x_n^{orders[n]} over coordinates n, as a rational number."""
    if law.exchangeable:
        known: dict[tuple[int, ...], fmpq] = {}

        def joint(orders: dict[int, int]) -> fmpq:
            key = tuple(sorted(orders.values()))
            if key not in known:
                known[key] = _rational(law.joint_moment(key, dim))
            return known[key]

        return joint
    terms = [
        (_rational(probability), [list(map(_rational, line)) for line in lines])
        for probability, lines in law.product_terms(dim)
    ]

    def mixed(orders: dict[int, int]) -> fmpq:
        total = fmpq(0)
        for product, lines in terms:
            for n, order in orders.items():
                product = product * lines[n][order]
            total += product
        return total

    return mixed
