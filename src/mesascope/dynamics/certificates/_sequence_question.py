"""Certificates of linear attention on sequences: its loss, and the theorems of zheng2024 about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from flint import arb

from mesascope.models import Normalizer
from mesascope.objectives import LossPolynomial, loss_polynomial
from mesascope.processes import Constant, DiagonalUnitary, NextToken
from mesascope.theory.zheng2024 import limit_product

from ._balls import as_fmpq
from ._krawczyk import Slice
from ._question import Question

_NEAR = Fraction(1, 10**6)  # flows stop much nearer to where they end


@dataclass(frozen=True)
class SequenceQuestion(Question):
    """The loss of one head of linear attention on sequences.

    Attributes:
        process: with a law whose moments are rational.
        task: horizon and weights of the context lengths.
        normalizer: "t-1", "t" or "1".
        mask: "off-diagonal" if all weights off the diagonals of the d × d blocks are 0 and stay so.
    """

    process: DiagonalUnitary
    task: NextToken
    normalizer: Normalizer
    mask: Literal["off-diagonal"] | None = None

    @property
    def fixed(self) -> frozenset[int]:
        """The places in θ of the masked weights."""
        if self.mask is None:
            return frozenset()
        dim = self.process.dim
        return frozenset(np.flatnonzero(np.tile(np.eye(dim), (3, 2)).reshape(-1) == 0).tolist())

    @cached_property
    def polynomial(self) -> LossPolynomial:
        """L with rational coefficients."""
        return loss_polynomial(self.process, self.task, self.normalizer)

    def describe(self) -> str:
        """A sentence that says what L is."""
        mask = ", with all weights off the diagonals of the blocks 0" if self.mask else ""
        weights = "all weighted 1" if self.task.weights is None else "weighted as the specification says"
        return (
            f"L is the population loss of one layer of linear attention on {self.process.describe()} with horizon "
            f"{self.task.horizon}, context lengths {weights}, ρ_t = {self.normalizer}{mask}."
        )

    def places(self) -> dict[str, np.ndarray]:
        """The places in θ of the entries of W^KQ and W^PV."""
        width = 2 * self.process.dim
        rows = np.arange(3 * width * width // 2).reshape(-1, width)
        return {"w_kq": rows[:width], "w_pv": rows[width:]}

    def products(self, theta: Sequence[Any]) -> tuple[Any, ...]:
        """The a_j b_j, the products of the two diagonals."""
        return tuple(theta[n] * theta[m] for n, m in zip(*diagonal_places(self.process.dim), strict=True))

    def theorem_product(self) -> Fraction | None:
        """The a_j b_j of Theorem 4.1, or of Theorem 4.3 with the mask; None if neither applies, or the product is 0."""
        try:
            product = limit_product(self.process, self.task, mask=self.mask, normalizer=str(self.normalizer))
        except ValueError:
            return None
        return product if isinstance(product, Fraction) and product > 0 else None

    @property
    def theorem(self) -> str:
        """Where the product is stated: by the paper, or by its generalization in `theory.zheng2024`."""
        papers_own = self.task.weights is None and self.normalizer == "t-1"
        if papers_own and self.mask is None:
            return "the value of Theorem 4.1 of zheng2024"
        if papers_own and isinstance(self.process.law, Constant):
            return "the value of Theorem 4.3 of zheng2024"
        return "the value to which Theorem 4.1 of zheng2024 generalizes here"

    def theorem_at(self, theta: Sequence[Fraction]) -> Fraction | None:
        """The product of the theorem, if it is that of every coordinate."""
        limit = self.theorem_product()
        return limit if limit is not None and all(one == limit for one in self.products(theta)) else None

    def theorem_near(self, where: Slice, centre: Sequence[Fraction], radius: Fraction) -> Fraction | None:
        """The product of the theorem, if the critical point in the box is the one that the theorem names.

        The point with a_j = ±c and b_j = ±1, the signs being those of the centre, has rational weights: that its gradient is
        0 is checked exactly. Scaled to the conserved quantities of the centre it lies in the box, where there is one only.
        """
        dim = self.process.dim
        product, groups = self.theorem_product(), _groups(dim, where)
        if product is None or groups is None:
            return None
        a, b = diagonal_places(dim)
        point = diagonal_point(product, [1 if centre[n] > 0 else -1 for n in a])
        slope = self.polynomial.gradient([as_fmpq(entry) for entry in point])
        if any(slope[n] != 0 for n in where.free):
            return None
        scaled = [arb(as_fmpq(entry)) for entry in point]
        for v, group in zip(where.scalings, groups, strict=True):
            balance = sum((v[k] * centre[n] ** 2 for k, n in enumerate(where.free)), Fraction(0))
            scale = _scale(len(group), product, balance * v[where.free.index(a[group[0]])])
            for j in group:
                scaled[a[j]] *= scale
                scaled[b[j]] /= scale
        inside = (abs(scaled[n] - as_fmpq(centre[n])) < arb(as_fmpq(radius)) for n in where.free)
        return product if all(inside) else None

    def exact_point(self, near: Sequence[Fraction], where: Slice) -> tuple[Fraction, ...] | None:
        """The theorem's point with the signs of a guess, if the guess lies on its orbit."""
        product = self.theorem_product()
        if product is None:
            return None
        a, b = diagonal_places(self.process.dim)
        if any(abs(near[n] * near[m] / product - 1) > _NEAR for n, m in zip(a, b, strict=True)):
            return None
        size = max(abs(near[n]) for n in (*a, *b))
        if any(abs(near[n]) > _NEAR * size for n in set(where.free) - {*a, *b}):
            return None
        return diagonal_point(product, [1 if near[n] > 0 else -1 for n in a])


def _groups(dim: int, where: Slice) -> list[list[int]] | None:
    """The coordinates whose a_j and b_j each scaling moves, as W^KQ → s W^KQ, W^PV → W^PV/s does; None if it is otherwise."""
    place = {n: k for k, n in enumerate(where.free)}
    a, b = diagonal_places(dim)
    if not {*a, *b} <= set(place):
        return None
    groups = []
    for v in where.scalings:
        moved = [(j, v[place[a[j]]], v[place[b[j]]]) for j in range(dim) if v[place[a[j]]] or v[place[b[j]]]]
        if not moved or {(x, y) for _, x, y in moved} not in ({(1, -1)}, {(-1, 1)}):
            return None
        groups.append([j for j, *_ in moved])
    return groups if sorted(j for group in groups for j in group) == list(range(dim)) else None


def _scale(count: int, product: Fraction, balance: Fraction) -> arb:
    """The s > 0 with count · ((s c)² − 1/s²) equal to the balance, Σ a_j² − Σ b_j² of the coordinates of a group."""
    square, q = as_fmpq(count * product**2), as_fmpq(balance)
    root = (arb(q) ** 2 + arb(4 * count * square)).sqrt()
    return ((arb(q) + root) / arb(2 * square)).sqrt()


def diagonal_point(product: Fraction, signs: Sequence[int]) -> tuple[Fraction, ...]:
    """The weights with a_j = sign_j times the product and b_j = sign_j, 0 for both where the sign is 0; all else is 0."""
    dim = len(signs)
    point = [Fraction(0)] * (6 * dim**2)
    for n, m, sign in zip(*diagonal_places(dim), signs, strict=True):
        point[n], point[m] = sign * product, Fraction(sign)
    return tuple(point)


def diagonal_places(dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of a_1 … a_d and b_1 … b_d in θ: the (x_{i−1}, x_t) block of W^KQ, the x_i block of W^PV."""
    width = 2 * dim
    a = tuple(width * (dim + j) + j for j in range(dim))
    b = tuple(4 * dim**2 + width * j + j for j in range(dim))
    return a, b
