"""Exact spectral moments of Gaussian Gram matrices, as rational numbers of any order."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

from ..core import integer_at_least


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
    return sum((c * Fraction(wishart_moment(k, d, n), n**k) for k, c in enumerate(coefficients)), Fraction(0))


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
        dim: $d$.
        examples: $n$.

    Source: Macdonald, Symmetric functions and Hall polynomials, VI.10, with the means of zonal polynomials of Muirhead,
    Aspects of multivariate statistical theory, Theorem 7.2.7.
    """
    if order == 0:
        return dim
    total = Fraction(0)
    for shape in _shapes(order):
        columns = [sum(row > j for row in shape) for j in range(shape[0])]
        boxes = [(i, j) for i, row in enumerate(shape) for j in range(row)]
        contents = [2 * j - i for i, j in boxes]
        mean = prod((dim + c) * (examples + c) for c in contents)
        if mean:
            hooks = (2 * (shape[i] - j - 1) + columns[j] - i - 1 for i, j in boxes)
            total += Fraction(2 * order * prod(contents[1:]) * mean, prod((h + 1) * (h + 2) for h in hooks))
    return int(total)


def _shapes(order: int) -> Iterator[tuple[int, ...]]:
    """The partitions of the order whose third part is at most 1."""
    for first in range(1, order + 1):
        left = order - first
        yield from ((first, second, *[1] * (left - second)) for second in range(1, min(first, left) + 1))
        if not left:
            yield (first,)
