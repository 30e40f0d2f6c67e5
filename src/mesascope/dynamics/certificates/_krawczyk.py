r"""A proof that exactly one critical point of the loss lies in a box: the test of Krawczyk.

The loss does not change along its scalings θ_n → s^{v_n} θ_n, so that critical points come in orbits. One point of an orbit is
singled out by the value of $\sum_n v_n \theta_n^2$, which gradient flow conserves. With a multiplier μ_i for each scaling,

    F(θ, μ) = (∇L(θ) + Σ_i μ_i v_i∘θ,  ½ Σ_n v_{i,n} (θ_n² − θ⁰_n²))

is zero exactly at the critical points with the conserved quantities of θ⁰: the inner product of the first line with v_i∘θ
is Σ_j μ_j ⟨v_i∘θ, v_j∘θ⟩, since ∇L is orthogonal to its orbits, and so μ = 0 wherever the v_i∘θ are linearly independent.
They are at a zero in a box that passes: its Jacobian, which holds them as columns, is invertible there.

For a box X around z⁰, a matrix Y and an enclosure of F′(X),

    K(X) = z⁰ − Y F(z⁰) + (I − Y F′(X)) (X − z⁰)

contains all zeros in X, and if it lies in the interior of X there is exactly one (Krawczyk 1969; Moore 1977; Rump 2010,
Theorem 13.2). All is computed with balls, so that rounding is part of the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from flint import arb, arb_mat

from ._balls import as_fmpq, ball, column, exact_inverse, midpoint, upper, weighted_row_sums
from ._decimals import above


class NotProvedError(ValueError):
    """A proof failed, which says nothing about whether the statement holds.

    Attributes:
        field: the input that causes it: `"radius"`, `"w_kq"` or `"w_pv"`; None if it is the loss.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Smooth(Protocol):
    """A function whose value and derivatives have enclosures: of balls, balls."""

    def value(self, theta: Sequence[Any]) -> Any:
        """L(θ)."""

    def gradient(self, theta: Sequence[Any]) -> list[Any]:
        """∇L(θ)."""

    def hessian(self, theta: Sequence[Any]) -> list[list[Any]]:
        """∇²L(θ)."""


@dataclass(frozen=True)
class Slice:
    """The critical points that are looked for.

    Attributes:
        loss: L, with coefficients that are balls.
        free: the places in θ of the weights that may vary; all others stay as they are.
        scalings: the v of every scaling, at the free places.
    """

    loss: Smooth
    free: tuple[int, ...]
    scalings: tuple[tuple[int, ...], ...]

    def system(self, theta: Sequence[Any], multipliers: Sequence[Any], start: Sequence[Any]) -> list[Any]:
        """F, as long as there are free weights and scalings."""
        slope = self.loss.gradient(theta)
        pulled = [
            slope[n]
            + sum((m * v[k] * theta[n] for m, v in zip(multipliers, self.scalings, strict=True)), arb(0))
            for k, n in enumerate(self.free)
        ]
        kept = [
            sum((v[k] * (theta[n] ** 2 - start[n] ** 2) for k, n in enumerate(self.free) if v[k]), arb(0)) / 2
            for v in self.scalings
        ]
        return pulled + kept

    def jacobian(self, theta: Sequence[Any], multipliers: Sequence[Any]) -> arb_mat:
        """F′, symmetric."""
        curvature = self.hessian(theta)
        orbits = self.orbits(theta)
        for k in range(len(self.free)):
            curvature[k][k] += sum(
                (m * v[k] for m, v in zip(multipliers, self.scalings, strict=True)), arb(0)
            )
        rows = [row + [orbit[k] for orbit in orbits] for k, row in enumerate(curvature)]
        return arb_mat(rows + [orbit + [arb(0)] * len(orbits) for orbit in orbits])

    def hessian(self, theta: Sequence[Any]) -> list[list[Any]]:
        """∇²L at the free weights."""
        whole = self.loss.hessian(theta)
        return [[whole[n][m] for m in self.free] for n in self.free]

    def orbits(self, theta: Sequence[Any]) -> list[list[Any]]:
        """v∘θ for every scaling: the direction in which it moves the free weights."""
        return [[v[k] * theta[n] for k, n in enumerate(self.free)] for v in self.scalings]

    def box(self, centre: Sequence[Fraction], radius: Fraction) -> list[arb]:
        """The weights within the radius of a centre; those that are not free are exactly there."""
        free = set(self.free)
        return [ball(c, radius if n in free else Fraction(0)) for n, c in enumerate(centre)]


@dataclass(frozen=True)
class Krawczyk:
    """The test around one centre.

    Attributes:
        step: bounds of |Y F(z⁰)|, entry by entry.
        inverse: Y.
        unit: multipliers have the size of curvatures, not of weights: their box is wider by this power of 2.
    """

    slice: Slice
    centre: tuple[Fraction, ...]
    step: tuple[arb, ...]
    inverse: arb_mat
    unit: Fraction

    @classmethod
    def at(cls, where: Slice, centre: Sequence[Fraction]) -> Krawczyk:
        """Prepare it.

        Raises:
            NotProvedError: the Jacobian may be singular: the critical point, if there is one, is degenerate; or the loss
                depends on no weight.
        """
        if not where.free:
            raise NotProvedError(
                "the loss depends on no weight, so that no critical point is isolated; take tokens that are not 0"
            )
        theta = [arb(as_fmpq(c)) for c in centre]
        zeros = [arb(0)] * len(where.scalings)
        jacobian = where.jacobian(theta, zeros)
        try:
            inverse = exact_inverse(jacobian)
        except ZeroDivisionError:
            raise NotProvedError(
                "the Hessian may be singular beyond the scalings: a degenerate critical point, or none; certify another limit, "
                "or ask for more digits"
            ) from None
        step = inverse * column(where.system(theta, zeros, theta))
        bounds = tuple(entry.abs_upper() for entry in step.entries())
        return cls(where, tuple(centre), bounds, inverse, _power_of_2(_curvature(jacobian, len(where.free))))

    @property
    def widths(self) -> list[arb]:
        """The radii of the box in units of that of the weights: 1 for weights, `unit` for multipliers."""
        return [arb(1)] * len(self.slice.free) + [arb(as_fmpq(self.unit))] * len(self.slice.scalings)

    @property
    def newton(self) -> Fraction:
        """The largest entry of Y F(z⁰), the step of Newton's method."""
        return max(map(upper, self.step), default=Fraction(0))

    def contraction(self, radius: Fraction) -> list[arb]:
        """Bounds of |I − Y F′(X)| times the widths, row by row."""
        box = self.slice.box(self.centre, radius)
        multipliers = [ball(Fraction(0), radius * self.unit)] * len(self.slice.scalings)
        product = self.inverse * self.slice.jacobian(box, multipliers)
        return weighted_row_sums(arb_mat(product.nrows(), product.nrows(), 1) - product, self.widths)

    def passes(self, radius: Fraction) -> bool:
        """Whether exactly one critical point of the slice lies within the radius, proved; False proves nothing."""
        r = arb(as_fmpq(radius))
        rows = zip(self.step, self.contraction(radius), self.widths, strict=True)
        return all(step + rate * r < width * r for step, rate, width in rows)


def _curvature(jacobian: arb_mat, free: int) -> Fraction:
    """The largest entry of the Hessian, which F′ holds at the centre, where multipliers are 0; 1 where all are 0."""
    entries = (upper(jacobian[n, m]) for n in range(free) for m in range(free))
    return max(entries, default=Fraction(0)) or Fraction(1)


def _power_of_2(size: Fraction) -> Fraction:
    """The power of 2 that a number > 0 has the size of."""
    return Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())


def polished(where: Slice, guess: Sequence[Fraction], digits: int, steps: int = 12) -> tuple[Fraction, ...]:
    """Newton's method for F from a guess, with midpoints only: a centre for the test, to so many decimal places.

    Raises:
        NotProvedError: it does not converge.
    """
    centre, last = list(guess), Fraction(0)
    for _ in range(steps):
        test = Krawczyk.at(where, centre)
        theta = [arb(as_fmpq(c)) for c in centre]
        move = test.inverse * column(where.system(theta, [arb(0)] * len(where.scalings), theta))
        for n, entry in zip(where.free, move.entries(), strict=False):  # multipliers stay 0
            centre[n] -= midpoint(entry)
        size = test.newton
        if size < Fraction(1, 10**digits):
            return tuple(centre)
        if last and size > last:
            break
        last = size
    raise NotProvedError(
        f"the start is not near a critical point: the steps of Newton's method do not shrink (the last is {above(size)}); "
        "start from the end of a flow that converged"
    )
