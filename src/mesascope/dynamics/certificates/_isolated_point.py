"""The proof that a critical point of the population loss lies within a radius of a centre, from the loss alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ._balls import ends, precision
from ._decimals import above, exactly
from ._inertia import certified_inertia
from ._krawczyk import Krawczyk, NotProvedError
from ._question import Proved, Question

_GUARD_BITS = 96  # beyond the digits asked for: the condition of the Hessian, sums of many thousand monomials


def prove_isolated(question: Question, centre: Sequence[Fraction], radius: Fraction) -> Proved:
    """Prove what can be proved about the critical point near a centre, from the loss alone.

    Raises:
        NotProvedError: a test does not pass, which says nothing about whether the statement holds.
    """
    question.require_masked(centre)
    with precision(bits_for(question, radius)):
        where = question.where()
        test = Krawczyk.at(where, centre)
        if not test.passes(radius):
            raise NotProvedError(
                f"no critical point was proved within {exactly(radius)} of the centre; the step of Newton's method is "
                f"{above(test.newton)} there: take a centre nearer to a critical point, or a larger radius",
                "radius",
            )
        box = where.box(centre, radius)
        inertia = certified_inertia(where.hessian(box), where.orbits(box))
        return Proved(
            radius,
            _widest(test, radius),
            inertia,
            question.unused,
            ends(where.loss.value(box)),
            tuple(map(ends, question.products(box))),
            question.theorem_near(where, centre, radius),
        )


def bits_for(question: Question, radius: Fraction) -> int:
    """The precision that proofs within a radius are computed with: its digits, and those that the coefficients of L span."""
    return max(64, (1 / radius).numerator.bit_length()) + 2 * question.polynomial.bits + _GUARD_BITS


def _widest(test: Krawczyk, radius: Fraction) -> Fraction:
    """The largest radius tried within which there is no second critical point."""
    wide = Fraction(1, 10)
    while wide > radius and not test.passes(wide):
        wide /= 10
    return max(wide, radius)
