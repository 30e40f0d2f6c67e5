"""Which critical points are asked about, and what can be proved about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from flint import arb

from mesascope.models import Normalizer
from mesascope.objectives import LossPolynomial, loss_polynomial
from mesascope.processes import Constant, DiagonalUnitary, NextToken
from mesascope.theory.zheng2024 import limit_product

from ._inertia import Inertia
from ._krawczyk import NotProvedError, Slice


@dataclass(frozen=True)
class Question:
    """Which loss, and which weights may vary.

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

    @property
    def unused(self) -> int:
        """The number of weights, not counting masked ones, that L does not depend on."""
        return len(set(self.polynomial.inert()) - self.fixed)

    def where(self) -> Slice:
        """Where critical points are looked for: not along weights that are masked, or that L does not depend on."""
        loss = self.polynomial
        still = self.fixed | set(loss.inert())
        free = tuple(n for n in range(loss.size) if n not in still)
        scalings = tuple(tuple(v[n] for n in free) for v in loss.scalings())
        return Slice(loss.over(arb), free, _independent(scalings))

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


def _independent(scalings: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Those that still move something, without repetition."""
    return tuple(dict.fromkeys(v for v in scalings if any(v)))


@dataclass(frozen=True)
class Proved:
    """What was proved about a critical point.

    Attributes:
        radius: there is exactly one critical point with the conserved quantities of the centre within it, entry by entry;
            0 if the centre itself is one.
        unique_within: and no other one within this larger radius; None if nothing is known about others.
        inertia: the signs of the eigenvalues of its Hessian over the weights that L depends on and no mask holds.
        unused: the number of weights that L does not depend on; nothing is said about them.
        loss: numbers below and above the loss there.
        products: the same for a_j b_j, the products of the two diagonals, of every coordinate.
        theorem: the product of the limit that `theory.zheng2024` names (see `Question.theorem`) if every a_j b_j is exactly
            that, a rational number; else None.
    """

    radius: Fraction
    unique_within: Fraction | None
    inertia: Inertia
    unused: int
    loss: tuple[Fraction, Fraction]
    products: tuple[tuple[Fraction, Fraction], ...]
    theorem: Fraction | None


def require_masked(question: Question, centre: Sequence[Fraction]) -> None:
    """Refuse a centre that is not 0 where the mask is: scalings would move what is held.

    Raises:
        NotProvedError: names the entry.
    """
    for n in sorted(question.fixed):
        if centre[n] != 0:
            raise NotProvedError(
                f"entry {n} is masked and must be 0; take it to be 0, or leave out the mask",
                field_of(n, question.process.dim),
            )


def field_of(place: int, dim: int) -> str:
    """The matrix in which a place of θ lies."""
    return "w_kq" if place < 4 * dim**2 else "w_pv"


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
