"""The population loss of any weights as a list of contractions, with coefficients in symbols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mesascope.processes import DiagonalUnitary, NextToken

from .._counts import counts
from .._partitions import Partition
from ._lengths import LengthSums
from ._moments import MomentSymbols
from ._problem import check_problem
from ._tidy import tidy

if TYPE_CHECKING:
    from sympy import Expr

_LETTERS = "ijklmn"
_FACTORS = {"quadratic": ("A", "K", "K"), "cross": ("P", "K")}


@dataclass(frozen=True)
class Factor:
    """One factor of a contraction.

    Attributes:
        matrix: `A` for P^T P, `K` for W^KQ, `P` for W^PV.
        block: which d × d block, from 0: row and column.
        indices: the letters of its row and column in the block.
    """

    matrix: str
    block: tuple[int, int]
    indices: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.matrix}{''.join(map(str, self.block))}[{','.join(self.indices)}]"

    @property
    def latex(self) -> str:
        """The factor in LaTeX."""
        return f"{self.matrix}^{{{''.join(map(str, self.block))}}}_{{{' '.join(self.indices)}}}"


@dataclass(frozen=True, repr=False)
class Contraction:
    r"""A coefficient times a sum of products of entries, over coordinates of which no two are equal.

    Attributes:
        coefficient: in T and the moments of the initial token.
        factors: blocks of A = P^T P and of K = W^KQ, or of P = W^PV and of K; none for the constant
            $d\, m_2 \sum_t w_t / 2$.
    """

    coefficient: Expr
    factors: tuple[Factor, ...]

    @property
    def indices(self) -> tuple[str, ...]:
        """The letters that are summed over, 1 … d each, all different."""
        return tuple(sorted({letter for factor in self.factors for letter in factor.indices}))

    @property
    def text(self) -> str:
        """E.g. `-m_4*(T - 2) sum_{i} P00[i,i] K10[i,i]`."""
        if not self.factors:
            return str(self.coefficient)
        return f"{self.coefficient} sum_{{{','.join(self.indices)}}} {' '.join(map(str, self.factors))}"

    @property
    def latex(self) -> str:
        """The contraction in LaTeX; ≠ above the sum says that no two indices are equal."""
        from sympy import latex

        if not self.factors:
            return latex(self.coefficient)
        entries = " ".join(one.latex for one in self.factors)
        return (
            rf"\left({latex(self.coefficient)}\right) \sum^{{\neq}}_{{{', '.join(self.indices)}}} {entries}"
        )

    def __repr__(self) -> str:
        return f"Contraction({self.text})"


def contractions(
    process: DiagonalUnitary, task: NextToken, *, normalizer: str = "t-1"
) -> tuple[Contraction, ...]:
    r"""Return the population loss of one layer of linear attention, for any real weights, as a sum of contractions.

    With $K = W^{KQ}$, $P = W^{PV}$, $A = P^\top P$, and blocks $\beta, \gamma$ of size d × d,

    $$L = \frac d2 m_2 \sum_t w_t + \sum c \sum^{\ne}_{i, j, \dots} A^{\alpha'\alpha} K^{\beta\gamma} K^{\beta'\gamma'}
    - \sum c \sum^{\ne}_{i, j} P^{0\alpha} K^{\beta\gamma}.$$

    Contractions that vanish for the law are left out, equal ones are added.

    Args:
        process: diagonal unitary sequences.
        task: horizon $T$ and weights $w_t$.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Raises:
        TypeError: for another process or task.
        ValueError: a moment of order ≤ 6 does not exist, or the coordinates of the law are not exchangeable.
    """
    from sympy import Integer, Rational, Symbol

    check_problem(process, task, normalizer)
    if not process.law.exchangeable:
        raise ValueError(
            f"law: moments of {process.law.describe()} depend on the coordinate; use formula with blocks of weights"
        )
    moments, lengths = MomentSymbols(process.law, process.dim), LengthSums(task, normalizer)
    found = [Contraction(Symbol("d") * tidy(moments((2,)) * lengths.total()) / 2, ())]
    for term, power, factor in (("cross", 1, Integer(-1)), ("quadratic", 2, Rational(1, 2))):
        known: dict[tuple, Expr] = {}
        for (labels, letters), numbers in _merged(term).items():
            orders = tuple(sorted(map(letters.count, set(letters)), reverse=True))
            if (orders, numbers) not in known:
                known[orders, numbers] = tidy(factor * moments(orders) * lengths(numbers, power))
            if known[orders, numbers] != 0:
                found.append(Contraction(known[orders, numbers], _factors(term, labels, letters)))
    return tuple(found)


def _merged(term: str) -> dict[tuple[tuple[int, ...], str], tuple[int, ...]]:
    """Return the counts of all labels and letters of the slots, added where the contractions are equal."""
    table = counts(term)
    every = np.concatenate([table.table, table.polynomial], -1)
    width = every.shape[1].bit_length() - 1
    found: dict[tuple[tuple[int, ...], str], np.ndarray] = defaultdict(lambda: np.zeros(every.shape[2], int))
    for (place, partition), code in product(enumerate(table.partitions), range(every.shape[1])):
        if every[place, code].any():
            labels = tuple(code >> (width - 1 - n) & 1 for n in range(width))
            if term == "cross":
                labels = (0, *labels)  # W^PV has one row of blocks
            found[min(_equal(term, labels, partition))] += every[place, code]
    return {key: tuple(map(int, numbers)) for key, numbers in sorted(found.items(), key=_order)}


def _order(item: tuple[tuple[tuple[int, ...], str], np.ndarray]) -> tuple[int, str, tuple[int, ...]]:
    (labels, letters), _ = item
    return len(set(letters)), letters, labels


def _equal(term: str, labels: tuple[int, ...], partition: Partition) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the ways to write a contraction: A is symmetric, and the two factors K may be exchanged."""
    orders: list[tuple[int, ...]] = [(0, 1, 2, 3)]
    if term == "quadratic":
        orders = [(*a, *k) for a in ((0, 1), (1, 0)) for k in ((2, 3, 4, 5), (4, 5, 2, 3))]
    for order in orders:
        yield tuple(labels[slot] for slot in order), _letters(order, partition)


def _letters(order: tuple[int, ...], partition: Partition) -> str:
    """Return the letters of the slots in this order: equal for slots that share a coordinate, in order of the alphabet."""
    names: dict[frozenset[int], str] = {}
    for slot in order:
        block = next(one for one in partition if slot in one)
        names.setdefault(block, _LETTERS[len(names)])
    return "".join(names[next(one for one in partition if slot in one)] for slot in order)


def _factors(term: str, labels: tuple[int, ...], letters: str) -> tuple[Factor, ...]:
    return tuple(
        Factor(matrix, (labels[2 * n], labels[2 * n + 1]), (letters[2 * n], letters[2 * n + 1]))
        for n, matrix in enumerate(_FACTORS[term])
    )
