"""The check that numbers can be the moments of a distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from operator import ge

from ..specs import Number, show_number

Exponents = tuple[int, ...]

# Moments that are floats may come from numerical integration, of which half of the digits of a float can be expected.
_TOLERANCE = Fraction(1, 10**8)


def require_possible(of: str, moment: Callable[[Exponents], Number], exponents: Sequence[Exponents]) -> None:
    r"""Refuse moments of which the matrix $M_{ab} = E x^{a + b}$ of some monomials $x^a$ is that of no distribution.

    It must be positive semidefinite, and polynomials $p$ with $E p^2 = 0$ must have multiples with $E (x p)^2 = 0$.
    The decision is exact for exact numbers. If some are floats, 10⁻⁸ times the diagonal is added to the matrix before.

    Args:
        of: what has these moments, for messages.
        moment: from exponents to the moment.
        exponents: of the monomials, with those of a lower degree first.

    Raises:
        ValueError: no distribution has this matrix, or E 1 is not 1.
    """
    given = [[moment(tuple(map(sum, zip(a, b, strict=True)))) for b in exponents] for a in exponents]
    rows = [[Fraction(m) for m in row] for row in given]
    if any(isinstance(m, float) for row in given for m in row):
        for i, row in enumerate(rows):
            row[i] *= 1 + _TOLERANCE
    if given[0][0] != 1:
        raise ValueError(
            f"no distribution has the moments of {of}: E x^0 is {show_number(given[0][0])}, not 1"
        )
    zero: list[Exponents] = []  # where a polynomial that begins with this monomial is 0, so are its multiples
    for k, pivot_row in enumerate(rows):
        pivot = pivot_row[k]
        must_be_zero = any(all(map(ge, exponents[k], one)) for one in zero)
        wrong = pivot < 0 or (pivot > 0 and must_be_zero)
        bad = k if wrong else next((i for i in range(k, len(rows)) if not pivot and pivot_row[i]), None)
        if bad is not None:
            total = tuple(map(sum, zip(exponents[k], exponents[bad], strict=True)))
            raise ValueError(
                f"no distribution has the moments of {of}: {_name(total)} = {show_number(given[k][bad])} is impossible "
                f"beside its other moments of order at most {sum(total)} (their Hankel matrix is that of no distribution)"
            )
        if not pivot:
            zero.append(exponents[k])
        else:
            for row in rows[k + 1 :]:
                factor = row[k] / pivot
                row[k:] = [a - factor * b for a, b in zip(row[k:], pivot_row[k:], strict=True)]


@lru_cache
def monomials(coordinates: int, degree: int) -> tuple[Exponents, ...]:
    """Return the exponents of all monomials up to this degree, those of a lower degree first."""
    found = (one for one in product(range(degree + 1), repeat=coordinates) if sum(one) <= degree)
    return tuple(sorted(found, key=lambda one: (sum(one), one)))


def _name(exponents: Exponents) -> str:
    """Return `E x^4` or `E x_1^2 x_2^4`."""
    if len(exponents) == 1:
        return f"E x^{exponents[0]}"
    return " ".join(["E", *(f"x_{j + 1}^{n}" for j, n in enumerate(exponents) if n)])
