r"""Weights as symbols: sparsity patterns of W^KQ and W^PV, and the products of their entries that enter the loss.

A pattern says for every partition of the slots and all their labels (see `_counts`) what the sum of
$A_{\alpha'p', \alpha p} K_{\beta q, \gamma r} K_{\beta'q', \gamma'r'}$, or of $P_{k, \alpha p} K_{\beta q, \gamma r}$, over
the coordinates is: one coordinate for every block of the partition, all different.
"""

from __future__ import annotations

import abc
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from keyword import iskeyword
from math import prod
from typing import TYPE_CHECKING, Any

from mesascope.core import exact
from mesascope.specs import SpecError, error_path, number, show

from .._counts import counts
from .._partitions import Partition

if TYPE_CHECKING:
    from sympy import Expr, Symbol
    from sympy.polys.rings import PolyElement, PolyRing

Product = tuple[Partition, tuple[int, ...], "PolyElement"]
"""A partition of the slots, their labels, and the sum of the products of weights, a polynomial of them and d."""

Rows = Sequence[Sequence[Any]]
Pair = tuple["PolyElement", "PolyElement"]
"""u and v of a block."""

Symbols = dict["Symbol", None]
"""Symbols in the order in which they are met."""

DIAGONAL: tuple[Rows, Rows] = ([[0, 0], ["a", 0]], [["b", 0]])
"""The paper's diagonal weights: W^KQ maps x_t to a x_{i−1}, W^PV reads b x_i."""

_NAME = re.compile("[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)?")
_TAKEN = ("d", "T", "t", "w", "m")
"""Dimension, horizon, context length, its weight, and moments."""
_MAX_PRODUCTS = 200_000  # a few seconds


class Pattern(abc.ABC):
    """Weights that are numbers and symbols.

    Attributes:
        ring: the polynomials of the symbols of W^KQ, those of W^PV, and d, in this order.
    """

    ring: PolyRing

    @abc.abstractmethod
    def products(self, term: str) -> Iterator[Product]:
        """Yield what is not 0 of one term, `"quadratic"` or `"cross"`."""


@dataclass(frozen=True)
class BlockPattern(Pattern):
    """Every d × d block of W^KQ and W^PV is u I + v (J − I), where J has all entries 1, in any dimension d.

    Attributes:
        ring: the polynomials of the weights and d.
        kq: pairs (u, v) of the blocks (β, γ) of W^KQ.
        pv: pairs (u, v) of the blocks (0, α) of W^PV.
    """

    ring: PolyRing
    kq: dict[tuple[int, ...], Pair]
    pv: dict[tuple[int, ...], Pair]

    def products(self, term: str) -> Iterator[Product]:
        """Yield the products of every partition: d (d − 1) ⋯ of them, all equal."""
        first = self._gram() if term == "quadratic" else {at[1:]: pair for at, pair in self.pv.items()}
        choices = [first, self.kq, self.kq] if term == "quadratic" else [first, self.kq]
        for chosen in product(*choices):
            pairs = [blocks[at] for blocks, at in zip(choices, chosen, strict=True)]
            labels = tuple(label for at in chosen for label in at)
            # which of the factors have two slots of one coordinate → the product of the factors
            values = {
                equal: prod(
                    (pair[not one] for pair, one in zip(pairs, equal, strict=True)), start=self.ring.one
                )
                for equal in product((True, False), repeat=len(pairs))
            }
            for partition, equal in _equal_slots(term):
                if value := values[equal]:
                    yield partition, labels, value * self._choices(len(partition))

    def _gram(self) -> dict[tuple[int, ...], Pair]:
        """Return the blocks of A = PᵀP."""
        d = self.ring.gens[-1]
        return {
            (left[1], right[1]): (u * x + (d - 1) * v * y, u * y + v * x + (d - 2) * v * y)
            for left, (u, v) in self.pv.items()
            for right, (x, y) in self.pv.items()
        }

    def _choices(self, count: int) -> PolyElement:
        """Return the number of choices of different coordinates."""
        return prod((self.ring.gens[-1] - n for n in range(count)), start=self.ring.one)


@dataclass(frozen=True)
class EntryPattern(Pattern):
    """Every entry of W^KQ, 2d × 2d, and of W^PV, d × 2d, is a number or a symbol; the dimension is a number.

    Attributes:
        ring: the polynomials of the weights and d.
        kq: the entries that are not 0, by row and column.
        pv: the same.
        size: the dimension.
    """

    ring: PolyRing
    kq: dict[tuple[int, int], PolyElement]
    pv: dict[tuple[int, int], PolyElement]
    size: int

    def products(self, term: str) -> Iterator[Product]:
        """Yield one product for every choice of entries: their places say which slots share a coordinate."""
        if term == "cross":
            for (at, p), (to, k) in product(self.pv.items(), self.kq.items()):
                yield self._product((*at, *to), p * k, unlabelled=1)
            return
        for (at, a), (to, k), (too, z) in product(self._gram().items(), self.kq.items(), self.kq.items()):
            yield self._product((*at, *to, *too), a * k * z, unlabelled=0)

    def _gram(self) -> dict[tuple[int, int], PolyElement]:
        """Return the entries of A = PᵀP that are not 0."""
        found: dict[tuple[int, int], PolyElement] = defaultdict(lambda: self.ring.zero)
        for ((row, i), x), ((other, j), y) in product(self.pv.items(), self.pv.items()):
            if row == other:
                found[i, j] += x * y
        if len(found) * len(self.kq) ** 2 > _MAX_PRODUCTS:
            raise SpecError(
                f"{len(self.kq)} entries that are not 0 have too many products; set more of them to 0, or give "
                "W^KQ as 2 × 2 blocks",
                "w_kq",
            )
        return found

    def _product(self, slots: tuple[int, ...], value: PolyElement, *, unlabelled: int) -> Product:
        """Return the product of entries at places of the slots; the first `unlabelled` slots are rows of W^PV."""
        together = defaultdict(set)
        for slot, place in enumerate(slots):
            together[place % self.size].add(slot)
        labels = tuple(place // self.size for place in slots[unlabelled:])
        return frozenset(map(frozenset, together.values())), labels, value


@cache
def _equal_slots(term: str) -> tuple[tuple[Partition, tuple[bool, ...]], ...]:
    """Return every partition, and for each pair of slots 2n, 2n + 1 whether they share a coordinate."""
    partitions = counts(term).partitions
    pairs = range(0, sum(map(len, partitions[0])), 2)
    return tuple((one, tuple(any({n, n + 1} <= block for block in one) for n in pairs)) for one in partitions)


def pattern_of(w_kq: Rows, w_pv: Rows, dim: int, symbol: Symbol) -> Pattern:
    """Return the weights that two tables describe.

    Args:
        w_kq: W^KQ as 2 × 2 blocks, or as its 2d × 2d entries.
        w_pv: W^PV as 1 × 2 blocks, or as its d × 2d entries. A block is u for u I, or [u, v] for u I + v (J − I); u, v and
            entries are numbers or names of symbols.
        dim: the dimension of the process.
        symbol: d.

    Raises:
        SpecError: the tables have other shapes, an entry is neither number nor name, or a name has another meaning.
    """
    blocks = _in_blocks("w_kq", w_kq, 2, dim)
    if blocks != _in_blocks("w_pv", w_pv, 1, dim):
        raise SpecError("must have blocks if w_kq has blocks, and entries if it has entries", "w_pv")
    cell = _block if blocks else _weight
    with error_path("w_kq"):
        kq, kq_symbols = _read(w_kq, cell)
    with error_path("w_pv"):
        pv, pv_symbols = _read(w_pv, cell)
        if both := kq_symbols.keys() & pv_symbols:
            raise SpecError(f"{min(map(str, both))!r} is also an entry of w_kq; rename one of them")
    return _pattern((kq, pv), (*kq_symbols, *pv_symbols, symbol), None if blocks else dim)


def _pattern(tables: Sequence[dict], symbols: Sequence[Symbol], size: int | None) -> Pattern:
    """Return blocks, or entries of a token of this size, as polynomials of the symbols."""
    from sympy import QQ, ring

    polynomials = ring(symbols, QQ)[0]
    of = polynomials.from_expr
    if size is None:
        kq, pv = ({at: (of(u), of(v)) for at, (u, v) in table.items()} for table in tables)
        return BlockPattern(polynomials, kq, pv)
    kq, pv = ({at: of(value) for at, value in table.items() if value} for table in tables)
    return EntryPattern(polynomials, kq, pv, size)


def _in_blocks(name: str, rows: Rows, height: int, dim: int) -> bool:
    """Return whether a table has blocks, of which `height` are below each other, or entries."""
    if not isinstance(rows, list | tuple) or not all(isinstance(row, list | tuple) for row in rows):
        raise SpecError("must be a list of rows", name)
    shape = (len(rows), *{len(row) for row in rows})
    if shape not in ((height, 2), (height * dim, 2 * dim)):
        raise SpecError(f"must have {height} × 2 blocks or {height * dim} × {2 * dim} entries", name)
    return shape == (height, 2)


def _read(rows: Rows, cell: Callable[[Any, Symbols], Any]) -> tuple[dict[tuple[int, int], Any], Symbols]:
    """Return what every cell of a table means, and the symbols in it."""
    found: dict[tuple[int, int], Any] = {}
    symbols: Symbols = {}
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            with error_path(i, j):
                found[i, j] = cell(value, symbols)
    return found, symbols


def _block(value: Any, symbols: Symbols) -> tuple[Expr, Expr]:
    pair = value if isinstance(value, list | tuple) else (value, 0)
    if len(pair) != 2:
        raise SpecError("must be u for u I, or [u, v] with v off the diagonal")
    return _weight(pair[0], symbols), _weight(pair[1], symbols)


def _weight(value: Any, symbols: Symbols) -> Expr:
    """Return a number, or a symbol, which is put into `symbols`."""
    import sympy
    from sympy import Rational, Symbol

    written = str(value)
    if isinstance(value, str | Symbol) and _NAME.fullmatch(written):
        if written.partition("_")[0] in _TAKEN:
            raise SpecError(
                f"{written!r} has a meaning in the formula, as have {', '.join(_TAKEN)} and names that begin with one of "
                "them and _; rename it"
            )
        if hasattr(sympy, written) or iskeyword(written):
            raise SpecError(f"{written!r} has a meaning in sympy or Python; rename it")
        symbol = Symbol(written)
        symbols[symbol] = None
        return symbol
    if isinstance(value, str) and value[:1].isalpha():
        raise SpecError(f"{show(value)} is neither a number nor a name such as a or a_1; rename it")
    return Rational(*exact(number(value)).as_integer_ratio())
