"""A table of given numbers, compared by content, with exact moments and checks of symmetry."""

import hashlib
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ._law import MAX_ORDER


class Samples:
    """A read-only table of finite numbers that compares and hashes by content.

    Attributes:
        table: shape (n, d); of more axes, all but the first are one axis here.
        shape: the given shape.
        pooled: whether it is one pool of numbers for all coordinates, d = 1.
    """

    def __init__(self, values: np.ndarray):
        table = np.array(values, dtype=float) + 0.0  # turns −0 into 0, so that equal samples have equal bytes
        self._digest = hashlib.sha256(repr(table.shape).encode() + table.tobytes()).digest()
        self.shape, self.pooled = table.shape, table.ndim == 1
        self.table = table.reshape(len(table), -1)
        self.table.setflags(write=False)

    def tolist(self) -> list[Any]:
        """Return the numbers as lists, in the given shape."""
        given: Any = self.table.reshape(self.shape)
        return [*given.tolist()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Samples) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"<{' × '.join(map(str, self.shape))} numbers, sha256 {self._digest.hex()[:8]}>"

    @cached_property
    def _scaled(self) -> tuple[np.ndarray, int]:
        """Python integers n and D with table = n / D, for exact and fast sums of powers."""
        ratios = [value.as_integer_ratio() for value in self.table.ravel().tolist()]
        common = max(denominator for _, denominator in ratios)  # all denominators are powers of two
        integers = np.empty(self.table.size, dtype=object)
        integers[:] = [numerator * (common // denominator) for numerator, denominator in ratios]
        return integers.reshape(self.table.shape), common

    def mean_product(self, columns: tuple[int, ...], orders: tuple[int, ...]) -> Fraction:
        """Return the mean over the rows of Π_b (entry in columns[b]) ** orders[b], exactly."""
        integers, common = self._scaled
        products = np.ones(len(integers), dtype=object)
        for column, order in zip(columns, orders, strict=True):
            products = products * integers[:, column] ** order
        return Fraction(int(products.sum()), len(integers) * common ** sum(orders))

    def moments(self, column: int) -> tuple[Fraction, ...]:
        """Return the moments of orders 0 to 6 of one column."""
        return tuple(self.mean_product((column,), (order,)) for order in range(MAX_ORDER + 1))

    @cached_property
    def columns_identical(self) -> bool:
        """Whether all columns contain the same numbers, in any order."""
        ordered = np.sort(self.table, axis=0)
        return bool((ordered == ordered[:, :1]).all())

    @cached_property
    def rows_exchangeable(self) -> bool:
        """Whether permuting the columns leaves the collection of rows unchanged."""
        places = np.arange(self.table.shape[1])
        # Transpositions of neighbours generate all permutations.
        swaps = [np.where(places == j, j + 1, np.where(places == j + 1, j, places)) for j in places[:-1]]
        return all(self._same_rows(self.table[:, swap]) for swap in swaps)

    @cached_property
    def columns_even(self) -> bool:
        """Whether flipping all signs in any one column leaves the numbers in it unchanged."""
        return bool(np.array_equal(np.sort(self.table, axis=0), np.sort(-self.table, axis=0)))

    @cached_property
    def rows_even(self) -> bool:
        """Whether flipping all signs in any one column leaves the collection of rows unchanged."""
        flips = 1 - 2 * np.eye(self.table.shape[1])
        return all(self._same_rows(self.table * flip) for flip in flips)

    def _same_rows(self, other: np.ndarray) -> bool:
        """Return whether another table has the same rows, in any order."""
        other = other + 0.0  # turns −0 into 0
        return np.array_equal(self.table[np.lexsort(self.table.T)], other[np.lexsort(other.T)])
