"""Which critical points are asked about, and what can be proved about one."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from mesascope.objectives import LossPolynomial

from ._inertia import Inertia
from ._krawczyk import NotProvedError, Slice


class Question(abc.ABC):
    """Which loss, and which weights may vary.

    What certifies needs the loss as a polynomial only; what else is known of it, such as a theorem, questions of a kind of data
    answer.
    """

    @property
    @abc.abstractmethod
    def polynomial(self) -> LossPolynomial:
        """L with rational coefficients."""

    @abc.abstractmethod
    def describe(self) -> str:
        """A sentence that says what L is."""

    @abc.abstractmethod
    def places(self) -> dict[str, np.ndarray]:
        """The places in θ of the entries of every array of weights, by its name."""

    def field_of(self, place: int) -> str:
        """The array of weights in which a place of θ lies."""
        return next(name for name, places in self.places().items() if place in places)

    @property
    def fixed(self) -> frozenset[int]:
        """The places in θ of the masked weights."""
        return frozenset()

    @property
    def least(self) -> Fraction:
        """A number that L is nowhere below."""
        return Fraction(0)

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

    def require_masked(self, centre: Sequence[Fraction]) -> None:
        """Refuse a centre that is not 0 where the mask is: scalings would move what is held.

        Raises:
            NotProvedError: names the entry.
        """
        for n in sorted(self.fixed):
            if centre[n] != 0:
                raise NotProvedError(
                    f"entry {n} is masked and must be 0; take it to be 0, or leave out the mask",
                    self.field_of(n),
                )

    def products(self, theta: Sequence[Any]) -> tuple[Any, ...]:
        """The a_j b_j of weights; none if the loss has no such products."""
        return ()

    def theorem_at(self, theta: Sequence[Fraction]) -> Fraction | None:
        """What every a_j b_j is by a theorem, if these rational weights have those products."""
        return None

    def theorem_near(self, where: Slice, centre: Sequence[Fraction], radius: Fraction) -> Fraction | None:
        """What every a_j b_j is by a theorem, if its point is the only critical point within the radius."""
        return None

    @property
    def theorem(self) -> str:
        """Where the product is stated."""
        return ""

    def exact_point(self, near: Sequence[Fraction], where: Slice) -> tuple[Fraction, ...] | None:
        """A rational point that predicts what the guess does, up to rounding, and may be critical; None if none is known."""
        return None


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
        products: the same for a_j b_j, the products of the two diagonals, of every coordinate; of sequences only.
        theorem: the product of the limit that `theory.zheng2024` names (see `Question.theorem`) if every a_j b_j is exactly
            that, a rational number; else None.
        least: whether the loss there is exactly the least one.
    """

    radius: Fraction
    unique_within: Fraction | None
    inertia: Inertia
    unused: int
    loss: tuple[Fraction, Fraction]
    products: tuple[tuple[Fraction, Fraction], ...]
    theorem: Fraction | None
    least: bool = False
