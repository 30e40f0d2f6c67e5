"""Exact spectral moments of Gaussian Gram matrices, as rational numbers of any order."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import factorial
from operator import mul

from ._checks import integer_at_least


def mean_of_polynomial(coefficients: Sequence[Fraction | int], dim: int, examples: int) -> Fraction:
    r"""Return $E\, \mathrm{tr}\, f(\hat S)$ for $f(s) = \sum_k c_k s^k$.

    $\hat S = \frac1n \sum_{i=1}^n x_i x_i^\top$ with independent $x_i \sim N(0, I_d)$.

    Args:
        coefficients: $c_0, c_1, \dots$
        dim: $d \ge 1$.
        examples: $n \ge 1$.

    Raises:
        TypeError, ValueError: a size that is not an integer ≥ 1.
    """
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    moments = spectral_moments(len(coefficients) - 1, d, n)
    return sum((c * m for c, m in zip(coefficients, moments, strict=True)), Fraction(0))


def spectral_moments(most: int, dim: int, examples: int) -> list[Fraction]:
    r"""Return $E\, \mathrm{tr}\, \hat S^k$ for $k = 0, \dots, K$.

    $\hat S = \frac1n \sum_{i=1}^n z_i z_i^\top$ with independent $z_i \sim N(0, I_d)$.

    Args:
        most: $K \ge 0$.
        dim: $d \ge 1$.
        examples: $n \ge 1$.

    Raises:
        TypeError, ValueError: numbers that are not integers, or below these bounds.

    Source: derived here, from means of zonal polynomials.
    """
    count, d = integer_at_least("most", most, 0), integer_at_least("dim", dim, 1)
    n = integer_at_least("examples", examples, 1)
    return [Fraction(wishart_moment(k, d, n), n**k) for k in range(count + 1)]


@lru_cache(maxsize=4096)
def wishart_moment(order: int, dim: int, examples: int) -> int:
    r"""Return $E\, \mathrm{tr}\, W^k$, an integer, for $W = \sum_{i=1}^n x_i x_i^\top$, $x_i \sim N(0, I_d)$.

    The power sum $p_k$ of the eigenvalues is a sum of Jack polynomials $J_\lambda$ of parameter 2, whose means are products
    over the boxes of $\lambda$. With $i, j \ge 0$ the row and column of a box, $c = 2j - i$, and $a$ and $l$ the numbers of
    boxes to its right and below it,

    $$E\, \mathrm{tr}\, W^k = \sum_{\lambda \vdash k} 2k \prod_{(i, j) \ne (0, 0)} c
    \prod_{(i, j)} \frac{(d + c)(n + c)}{(2a + l + 1)(2a + l + 2)}.$$

    The box in the third row and second column has $c = 0$: only $\lambda = (p, q, 1, \dots, 1)$ contribute, about $k^2/4$.

    Args:
        order: $k \ge 0$.
        dim: $d \ge 1$.
        examples: $n \ge 1$.

    Source: Macdonald, Symmetric functions and Hall polynomials, VI.10, with the means of zonal polynomials of Muirhead,
    Aspects of multivariate statistical theory, Theorem 7.2.7.
    """
    if order == 0:
        return dim

    def products(contents: Iterable[int]) -> list[int]:
        factors = ((c or 1) * (dim + c) * (examples + c) for c in contents)  # the first box has no factor c
        return list(accumulate(factors, mul, initial=1))

    first, second = products(range(0, 2 * order, 2)), products(range(-1, 2 * order - 1, 2))
    column = products(range(-2, -order, -1))
    terms = (
        Fraction(first[p] * second[q] * column[ones], _hooks(p, q, ones)) for p, q, ones in _shapes(order)
    )
    return int(2 * order * sum(terms, Fraction(0)))


def _shapes(order: int) -> Iterator[tuple[int, int, int]]:
    """The partitions (p, q, 1, …, 1) of the order: p, q and the number of ones after them."""
    yield order, 0, 0
    for p in range(1, order):
        yield from ((p, q, order - p - q) for q in range(1, min(p, order - p) + 1))


def _hooks(p: int, q: int, ones: int) -> int:
    """The product of (2a + l + 1)(2a + l + 2) over the boxes of (p, q, 1, …, 1)."""

    def corner(arm: int, leg: int) -> int:
        return (2 * arm + leg + 1) * (2 * arm + leg + 2)

    if q == 0:  # one row: without its corner, boxes with arms p − 2 … 0 and no legs
        return corner(p - 1, 0) * factorial(2 * (p - 1))
    above = factorial(2 * p - 1) // factorial(2 * (p - q) + 1)  # boxes of the first row with one box below
    free = factorial(2 * (p - q))  # boxes of the first row with none below
    second = factorial(2 * (q - 1))  # boxes of the second row but its corner
    column = factorial(ones) * factorial(ones + 1)
    return corner(p - 1, ones + 1) * above * free * corner(q - 1, ones) * second * column
