"""The proof that a critical point of the population loss lies within a radius of a centre, from the loss alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from ._balls import as_fmpq, ends, precision
from ._decimals import above, exactly
from ._inertia import certified_inertia
from ._krawczyk import Krawczyk, NotProvedError, Slice
from ._question import Proved, Question, diagonal_places, diagonal_point, require_masked

_GUARD_BITS = 96  # beyond the digits asked for: the condition of the Hessian, sums of many thousand monomials


def prove_isolated(question: Question, centre: Sequence[Fraction], radius: Fraction) -> Proved:
    """Prove what can be proved about the critical point near a centre, from the loss alone.

    Raises:
        NotProvedError: a test does not pass, which says nothing about whether the statement holds.
    """
    require_masked(question, centre)
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
        products = [box[n] * box[m] for n, m in zip(*diagonal_places(question.process.dim), strict=True)]
        return Proved(
            radius,
            _widest(test, radius),
            inertia,
            question.unused,
            ends(where.loss.value(box)),
            tuple(map(ends, products)),
            _theorem(question, where, centre, radius),
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


def _theorem(
    question: Question, where: Slice, centre: Sequence[Fraction], radius: Fraction
) -> Fraction | None:
    """The product of the theorem, if the critical point in the box is the one that the theorem names.

    The point with a_j = ±c and b_j = ±1, the signs being those of the centre, has rational weights: that its gradient is
    0 is checked exactly. Scaled to the conserved quantities of the centre it lies in the box, where there is one only.
    """
    dim = question.process.dim
    product, groups = question.theorem_product(), _groups(dim, where)
    if product is None or groups is None:
        return None
    a, b = diagonal_places(dim)
    point = diagonal_point(product, [1 if centre[n] > 0 else -1 for n in a])
    slope = question.polynomial.gradient([as_fmpq(entry) for entry in point])
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
