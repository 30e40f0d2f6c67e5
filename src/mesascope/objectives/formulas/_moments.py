"""Moments of the initial token as symbols, and their values for a law."""

from __future__ import annotations

from functools import cached_property
from math import perm, prod
from typing import TYPE_CHECKING

from mesascope.core import exact
from mesascope.processes import Law

from .._partitions import moebius, set_partitions

if TYPE_CHECKING:
    from fractions import Fraction

    from sympy import Expr, Symbol

Orders = tuple[int, ...]
"""Exponents of different coordinates, in descending order."""


class MomentSymbols:
    r"""E Π_b x_{1 j_b}^{n_b} over different coordinates j_b as symbols.

    For independent, identically distributed coordinates they are products of m_n = E x_{1j}^n. For another law they are symbols
    such as m_42 = E x_{1j}^4 x_{1r}^2, averaged over all choices of different coordinates. Moments that the law lets vanish
    are 0.
    """

    def __init__(self, law: Law, dim: int) -> None:
        self.law, self.dim = law, dim
        self.values: dict[Symbol, Fraction] = {}

    def __call__(self, orders: Orders) -> Expr:
        """Return a moment of descending orders; its symbols enter `values`."""
        from sympy import Mul

        if self._independent:
            return Mul(*(self._symbol((order,)) for order in orders))
        return self._symbol(orders)

    @cached_property
    def _independent(self) -> bool:
        return self.law.exchangeable and len(self.law.product_terms(self.dim)) == 1

    def _symbol(self, orders: Orders) -> Expr:
        from sympy import Integer, Symbol

        value = exact(self._value(orders))
        # more different coordinates than the token has: in other dimensions the moment need not be 0
        if value == 0 and len(orders) <= self.dim:
            return Integer(0)
        symbol = Symbol(f"m_{''.join(map(str, orders))}")
        self.values[symbol] = value
        return symbol

    def _value(self, orders: Orders) -> Fraction:
        if self.law.exchangeable:
            return exact(self.law.joint_moment(orders, self.dim))
        if len(orders) > self.dim:
            return exact(0)
        # the sum over different coordinates by sums over all, with the Möbius function of set partitions
        finest = frozenset(frozenset({n}) for n in range(len(orders)))
        total = exact(0)
        for term in self.law.product_terms(self.dim):
            for coarse in set_partitions(len(orders)):
                sums = (
                    sum(prod(exact(line[orders[n]]) for n in block) for line in term.moments)
                    for block in coarse
                )
                total += exact(term.probability) * moebius(finest, coarse) * prod(sums)
        return total / perm(self.dim, len(orders))
