r"""A population loss as a polynomial with rational coefficients, of data of any kind.

The variables are the weights $\theta$ and, after them, intermediate ones, each a sum of products of two earlier variables,
such as the entries of $P^T P$ or of $W_K^T W_Q$. The loss is a sum of products of variables. So a term stands for many
monomials in the weights, and derivatives follow by eliminating the intermediate variables, last one first: with
$z = \sum_m x_{a_m} x_{b_m}$,

    ∂L/∂x_a += ∂L/∂z ∂z/∂x_a,
    ∂²L/∂x_a∂y += ∂²L/∂z∂y ∂z/∂x_a,    ∂²L/∂x_a∂x_c += ∂²L/∂z² ∂z/∂x_a ∂z/∂x_c + ∂L/∂z ∂²z/∂x_a∂x_c.

Evaluation needs numbers that can be added and multiplied: rational numbers (`fmpq`) give exact values, balls (`arb`)
enclosures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import gcd
from typing import Any, NamedTuple

from flint import fmpq, fmpz_mat

Vector = Sequence[Any]
Products = tuple[tuple[int, int], ...]
"""The pairs (a, b) of variables whose products x_a x_b an intermediate variable is the sum of."""


class Term(NamedTuple):
    """c · Π_n x_n over the places of some variables; a place that occurs twice is a square."""

    factors: tuple[int, ...]
    coefficient: Any


@dataclass(frozen=True)
class LossPolynomial:
    """L(θ).

    Attributes:
        size: the number of weights.
        products: what the intermediate variables are, in their order; their places follow those of the weights.
        terms: the terms of L, no factors twice.
        constant: the loss at θ = 0.
    """

    size: int
    products: tuple[Products, ...]
    terms: tuple[Term, ...]
    constant: Any

    @property
    def bits(self) -> int:
        """The largest distance of a coefficient from 1, as a power of 2."""
        found = (term.coefficient for term in self.terms)
        return max((abs(int(c.p).bit_length() - int(c.q).bit_length()) for c in found), default=0)

    def over(self, number: Callable[[fmpq], Any]) -> LossPolynomial:
        """Return the same polynomial with its coefficients as other numbers, e.g. balls."""
        terms = (term._replace(coefficient=number(term.coefficient)) for term in self.terms)
        return LossPolynomial(self.size, self.products, tuple(terms), number(self.constant))

    def value(self, theta: Vector) -> Any:
        """Return L(θ)."""
        x, total = self.variables(theta), self.constant
        for factors, coefficient in self.terms:
            total = total + _times(coefficient, x, factors)
        return total

    def gradient(self, theta: Vector) -> list[Any]:
        """Return ∇L(θ), of the length of θ."""
        x = self.variables(theta)
        slope = self._slopes(x)
        for place, pairs in self._eliminated():
            weight = slope[place]
            for a, b in pairs:
                slope[a] += weight * x[b]
                slope[b] += weight * x[a]
        return slope[: self.size]

    def hessian(self, theta: Vector) -> list[list[Any]]:
        """Return ∇²L(θ), symmetric."""
        x, zero = self.variables(theta), 0 * self.constant
        slope, curvature = self._slopes(x), [defaultdict[int, Any](lambda: zero) for _ in x]
        for factors, coefficient in self.terms:
            for one, other in combinations(range(len(factors)), 2):
                rest = (*factors[:one], *factors[one + 1 : other], *factors[other + 1 :])
                _add_pair(curvature, factors[one], factors[other], _times(coefficient, x, rest))
        for place, pairs in self._eliminated():
            _eliminate(curvature, slope, x, place, pairs, zero)
        return [[row.get(n, zero) for n in range(self.size)] for row in curvature[: self.size]]

    def inert(self) -> tuple[int, ...]:
        """Return the places of the weights on which the loss does not depend."""
        return tuple(n for n in range(self.size) if n not in self._used)

    def scalings(self) -> tuple[tuple[int, ...], ...]:
        r"""Return a basis of the scalings θ_n → s^{v_n} θ_n, v integers, that do not change the loss for any s > 0.

        These are the v orthogonal to the exponents of every monomial. Inert weights are not scaled.
        """
        normal: Counter[tuple[int, int]] = Counter()
        for row in self._exponents():
            for one, power in row:
                for other, its in row:
                    normal[one, other] += power * its
        for place in self.inert():
            normal[place, place] = 1
        rows = [[normal[n, m] for m in range(self.size)] for n in range(self.size)]
        found, rank = fmpz_mat(rows).nullspace()
        columns = ([int(found[n, m]) for n in range(self.size)] for m in range(rank))
        return tuple(_primitive(column) for column in columns)

    def _exponents(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield vectors that span the exponents of all monomials in θ, as (place, exponent).

        For each term that of one of its monomials; all others differ from it by the differences within a sum of products.
        """
        first: list[Counter[int]] = [Counter({n: 1}) for n in range(self.size)]
        seen: set[tuple[tuple[int, int], ...]] = set()
        for place, pairs in enumerate(self.products, self.size):
            sums = [first[a] + first[b] for a, b in pairs]
            first.append(sums[0])
            if place in self._used:
                seen |= {_sparse(one, sums[0]) for one in sums[1:]}
        seen |= {_sparse(sum((first[n] for n in term.factors), Counter()), Counter()) for term in self.terms}
        yield from seen

    @cached_property
    def _used(self) -> set[int]:
        """The variables that terms depend on."""
        used = {n for term in self.terms for n in term.factors}
        for place, pairs in self._eliminated():
            if place in used:
                used.update(n for pair in pairs for n in pair)
        return used

    def variables(self, theta: Vector) -> list[Any]:
        """Return the values of all variables: θ, then the intermediate ones."""
        if len(theta) != self.size:
            raise ValueError(f"theta: must be the {self.size} weights, got {len(theta)}")
        x = list(theta)
        for pairs in self.products:
            x.append(sum((x[a] * x[b] for a, b in pairs), 0 * self.constant))
        return x

    def _slopes(self, x: Vector) -> list[Any]:
        """Return ∂L/∂x_n of all variables, the intermediate ones being taken as independent."""
        slope = [0 * self.constant] * len(x)
        for factors, coefficient in self.terms:
            for at, place in enumerate(factors):
                slope[place] += _times(coefficient, x, (*factors[:at], *factors[at + 1 :]))
        return slope

    def _eliminated(self) -> Iterator[tuple[int, Products]]:
        """Yield the intermediate variables, last one first."""
        for n in reversed(range(len(self.products))):
            yield self.size + n, self.products[n]


def _eliminate(
    curvature: list[defaultdict[int, Any]],
    slope: list[Any],
    x: Vector,
    place: int,
    pairs: Products,
    zero: Any,
) -> None:
    """Move what depends on an intermediate variable to the variables that it is made of."""
    partial: dict[int, Any] = defaultdict(lambda: zero)
    for a, b in pairs:
        partial[a] += x[b]
        partial[b] += x[a]
        _add_pair(curvature, a, b, slope[place])
    row = curvature[place]
    square = row.pop(place, None)
    for y, second in row.items():
        del curvature[y][place]
        for a, by in partial.items():
            _add_pair(curvature, a, y, second * by)
    for a, by in partial.items():
        slope[a] += slope[place] * by
        if square is not None:
            for c, its in partial.items():
                curvature[a][c] += square * by * its


def _add_pair(curvature: list[defaultdict[int, Any]], one: int, other: int, second: Any) -> None:
    """Add a mixed second derivative; that of a square counts twice."""
    curvature[one][other] += second
    curvature[other][one] += second


def _times(coefficient: Any, x: Vector, places: Sequence[int]) -> Any:
    for place in places:
        coefficient = coefficient * x[place]
    return coefficient


def _sparse(one: Counter[int], other: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Return the entries of a difference that are not 0."""
    return tuple((n, d) for n in sorted({*one, *other}) if (d := one[n] - other[n]))


def _primitive(column: list[int]) -> tuple[int, ...]:
    """Return the column divided by its common factor, with a positive first non-zero entry."""
    divisor = gcd(*column)
    sign = next(1 if n > 0 else -1 for n in column if n)
    return tuple(sign * n // divisor for n in column)
