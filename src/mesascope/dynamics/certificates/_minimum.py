"""The proof that a function of few variables has a local minimum near a guess."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ._balls import precision, rounded
from ._inertia import certified_inertia
from ._krawczyk import Krawczyk, NotProvedError, Slice, Smooth, polished

_BITS_A_DIGIT, _GUARD_BITS = 4, 128  # log2(10) < 4; sums whose terms cancel


def prove_minimum(loss: Smooth, guess: Sequence[float], digits: int) -> tuple[Fraction, ...]:
    """Return a centre within 10^−digits of which there is exactly one critical point, a local minimum.

    Args:
        loss: the function; its constants are rational numbers or balls.
        guess: near the minimum.
        digits: decimal places of the centre.

    Raises:
        NotProvedError: the test of Krawczyk does not pass, or a curvature there may not be positive; says nothing about the
            function.
    """
    radius = Fraction(1, 10**digits)
    with precision(_BITS_A_DIGIT * digits + _GUARD_BITS):
        where = Slice(loss, tuple(range(len(guess))), ())
        near = polished(where, [Fraction(one) for one in guess], digits + 2)
        centre = tuple(rounded(one, digits) for one in near)
        if not Krawczyk.at(where, centre).passes(radius):
            raise NotProvedError(
                f"no critical point was proved within 1e-{digits} of the centre; take fewer digits"
            )
        inertia = certified_inertia(where.hessian(where.box(centre, radius)), [])
        if inertia.positive != len(guess):
            raise NotProvedError(
                f"the critical point is no minimum: {inertia.positive} curvatures are positive"
            )
    return centre
