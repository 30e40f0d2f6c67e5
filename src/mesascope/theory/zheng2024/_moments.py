"""The four moments of the initial token in the loss at diagonal weights."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ...core import exact
from ...processes import Law


@dataclass(frozen=True)
class TokenMoments:
    r"""Moments of the initial token, averaged over its coordinates $j$.

    Attributes:
        m2: $E x_{1j}^2$.
        kappa1: $\kappa_1 = E x_{1j}^4$.
        kappa2: $\kappa_2 = E x_{1j}^6$.
        kappa3: $\kappa_3 = \sum_{r \ne j} E x_{1j}^2 x_{1r}^4$.
    """

    m2: Fraction
    kappa1: Fraction
    kappa2: Fraction
    kappa3: Fraction


class CoordinateMoments(NamedTuple):
    r"""The moments of `TokenMoments` coordinate by coordinate, each a tuple over $j$.

    `kappa3_swapped` is $\sum_{r \ne j} E x_{1j}^4 x_{1r}^2$, with exchanged exponents.
    """

    m2: tuple[Fraction, ...]
    kappa1: tuple[Fraction, ...]
    kappa2: tuple[Fraction, ...]
    kappa3: tuple[Fraction, ...]
    kappa3_swapped: tuple[Fraction, ...]


@lru_cache(maxsize=256)  # exact moments of many joint samples take seconds; laws compare by value
def token_moments(law: Law, dim: int) -> TokenMoments:
    r"""Return $E x_{1j}^2$, $\kappa_1$, $\kappa_2$ and $\kappa_3$ of a law, averaged over the coordinates.

    For exchangeable laws they are equal for all coordinates (zheng2024, Assumption 4.1). For other laws the loss at diagonal
    weights depends on their averages.

    Args:
        law: the law of the initial token.
        dim: the token dimension $d$.

    Raises:
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: `dim` does not fit the law.
    """
    if law.exchangeable:
        m2, kappa1, kappa2 = (exact(law.joint_moment((order,), dim)) for order in (2, 4, 6))
        kappa3 = (dim - 1) * exact(law.joint_moment((2, 4), dim)) if dim > 1 else Fraction(0)
    else:
        each = coordinate_moments(law, dim)
        m2, kappa1, kappa2, kappa3 = (sum(column, Fraction(0)) / dim for column in each[:4])
    return TokenMoments(m2, kappa1, kappa2, kappa3)


@lru_cache(maxsize=256)
def coordinate_moments(law: Law, dim: int) -> CoordinateMoments:
    """Return the moments of every coordinate, computed from the law as a mixture of products."""
    columns = [[Fraction(0)] * dim for _ in CoordinateMoments._fields]
    for probability, moments in law.product_terms(dim):
        weight = exact(probability)
        second, fourth, sixth = ([exact(m[order]) for m in moments] for order in (2, 4, 6))
        sum2, sum4 = sum(second), sum(fourth)
        for j, (m2, m4, m6) in enumerate(zip(second, fourth, sixth, strict=True)):
            for column, moment in zip(columns, (m2, m4, m6, m2 * (sum4 - m4), m4 * (sum2 - m2)), strict=True):
                column[j] += weight * moment
    return CoordinateMoments(*map(tuple, columns))
