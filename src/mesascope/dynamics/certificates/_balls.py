"""Numbers with error bounds: decimal rationals, balls, and matrices of balls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, ctx, fmpq


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with balls whose midpoints have this many bits."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def as_fmpq(value: Fraction | int) -> fmpq:
    """A rational number of flint."""
    fraction = Fraction(value)
    return fmpq(fraction.numerator, fraction.denominator)


def as_fraction(value: fmpq) -> Fraction:
    """A rational number of Python."""
    return Fraction(int(value.p), int(value.q))


def ball(centre: Fraction, radius: Fraction) -> arb:
    """A ball that holds all numbers within the radius of the centre.

    It is made of its ends: `arb(centre, radius)` rounds the radius to a number of 30 bits, which may be a smaller one.
    """
    return arb(as_fmpq(centre - radius)).union(arb(as_fmpq(centre + radius)))


def midpoint(value: arb) -> Fraction:
    """The middle of a ball, a rational number."""
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def rounded(value: Fraction, digits: int) -> Fraction:
    """The nearest number with so many decimal places."""
    scale = 10**digits
    return Fraction(round(value * scale), scale)


def upper(value: arb) -> Fraction:
    """A rational number that |value| does not exceed."""
    return midpoint(value.abs_upper())


def ends(value: arb) -> tuple[Fraction, Fraction]:
    """Rational numbers below and above."""
    return midpoint(value.lower()), midpoint(value.upper())


def exact_inverse(matrix: arb_mat) -> arb_mat:
    """The midpoint of an enclosure of the inverse of a matrix: a matrix without errors, near the inverse.

    Raises:
        ZeroDivisionError: the matrix may be singular.
    """
    return matrix.inv().mid()


def column(values: Sequence[Any]) -> arb_mat:
    """A matrix of one column."""
    return arb_mat([[value] for value in values])


def weighted_row_sums(matrix: arb_mat, weights: Sequence[arb]) -> list[arb]:
    """Σ_j |m_ij| w_j for every row, bounds from above."""
    width = matrix.ncols()
    entries = [value.abs_upper() for value in matrix.entries()]
    rows = (entries[at : at + width] for at in range(0, len(entries), width))
    return [sum((m * w for m, w in zip(row, weights, strict=True)), arb(0)) for row in rows]
