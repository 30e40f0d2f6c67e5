"""The population loss of one layer of linear attention as a formula."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mesascope.core import exact
from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.specs import unknown

from .._counts import counts
from ._lengths import LengthSums
from ._moments import MomentSymbols
from ._problem import check_problem
from ._tidy import tidy, tidy_quotient, without_sums
from ._weights import DIAGONAL, BlockPattern, Pattern, Rows, pattern_of

if TYPE_CHECKING:
    from sympy import Expr, Symbol
    from sympy.polys.rings import PolyElement


@dataclass(frozen=True, repr=False, eq=False)
class Formula:
    r"""The loss $L = \sum_t w_t \frac12 E\|\hat y_t - x_{t+1}\|^2$ in symbols.

    Attributes:
        expression: L, a sympy expression in the weights, d, T, and the moments of the initial token.
        weights: the symbols in W^KQ, then those in W^PV.
        values: the exact value, for the process and the task, of everything else in the expression: d, T, moments, sums
            over context lengths.
        moments: the values of the moments alone.
    """

    expression: Expr
    weights: tuple[Symbol, ...]
    values: Mapping[Expr, Expr]
    moments: Mapping[Symbol, Expr]

    @property
    def text(self) -> str:
        """`L = …` on one line."""
        return f"L = {self.expression}"

    @property
    def latex(self) -> str:
        """`L = …` in LaTeX, without dollars."""
        from sympy import latex

        return f"L = {latex(self.expression)}"

    @cached_property
    def polynomial(self) -> Expr:
        """L with numbers for all but the weights: a polynomial with rational coefficients."""
        return self.numbers(self.expression).expand()

    def numbers(self, expression: Expr) -> Expr:
        """Return an expression made of symbols of this formula with the numbers of its process and task."""
        return expression.xreplace(dict(self.values)).doit()

    def __call__(self, **weights: Any) -> Fraction:
        """Return L at numbers for all weights, exactly; a float counts as the rational number that it is.

        Raises:
            TypeError: a weight is missing, or a name is not that of a weight.
        """
        names = {str(symbol): symbol for symbol in self.weights}
        if weights.keys() != names.keys():
            raise TypeError(f"weights: must be {', '.join(names)}; got {', '.join(weights) or 'none'}")
        value = self.polynomial.subs({names[name]: _rational(given) for name, given in weights.items()})
        return Fraction(int(value.p), int(value.q))

    def subs(self, **numbers: Any) -> Expr:
        """Return L with numbers of your choice for symbols, by name, e.g. `d=3, T=10, m_2=1`; sums are added up.

        Raises:
            TypeError: a name is not that of a symbol.
        """
        names = {str(symbol): symbol for symbol in self.expression.free_symbols}
        for name in numbers:
            if name not in names:
                raise TypeError(unknown("symbol", name, sorted(names)))
        return self.expression.subs({names[name]: _rational(n) for name, n in numbers.items()}).doit()

    def critical_products(self) -> dict[Expr, Expr]:
        r"""Return the products of weights at the critical point where none of them is 0.

        If each weight of W^KQ occurs in one product with a weight of W^PV, and the loss depends on the weights by these
        products alone, it is quadratic in them: its gradient is a linear system. On the diagonal it gives $ab$ of Theorem 4.1
        of zheng2024.

        Raises:
            ValueError: the loss depends on the weights in another way, or the system has no unique solution.
        """
        from sympy import Dummy, Poly, linsolve

        expression, sums = without_sums(self.expression)
        products: dict[Expr, Symbol] = {}
        for monomial in Poly(expression, *self.weights).monoms() if self.weights else ():
            used = [self.weights[n] for n, power in enumerate(monomial) if power]
            if sum(monomial) == len(used) == 2:
                kq, pv = used
                products[kq * pv] = Dummy()
                expression = expression.subs(kq, products[kq * pv] / pv).expand()
        if not products or expression.has(*self.weights):
            raise ValueError(
                "formula: the loss does not depend on products of one weight of W^KQ and one of W^PV alone; solve "
                "sympy.diff(formula.expression, weight) = 0 for its weights instead"
            )
        unknown = list(products.values())
        (solution,) = linsolve([expression.diff(one) for one in unknown], unknown) or (None,)
        if solution is None or any(value.has(*unknown) for value in solution):
            raise ValueError(
                "formula: no single critical point; leave out weights on which the loss does not depend"
            )
        values = (tidy_quotient(value.xreplace(sums)) for value in solution)
        return dict(zip(products, values, strict=True))

    def __repr__(self) -> str:
        return f"Formula({self.text})"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"


def _rational(value: Any) -> Expr:
    from sympy import Rational

    return Rational(*exact(value).as_integer_ratio())


def formula(
    process: DiagonalUnitary,
    task: NextToken,
    w_kq: Rows = DIAGONAL[0],
    w_pv: Rows = DIAGONAL[1],
    *,
    normalizer: str = "t-1",
) -> Formula:
    r"""Return the population loss of one layer of linear attention as a formula in its weights.

    Without weights it is the loss on the diagonal, $a I$ and $b I$ (zheng2024, Assumption 3.1). The law of the process says
    which moments are not 0 and whether its coordinates are independent, the task whether all $w_t$ are 1.

    Args:
        process: diagonal unitary sequences.
        task: horizon $T$ and weights $w_t$.
        w_kq: W^KQ as 2 × 2 blocks in any dimension $d$, or as its 2d × 2d entries for the dimension of the process. A block
            is `u` for $u I$, or `[u, v]` with `v` off the diagonal; `u`, `v` and entries are numbers or names.
        w_pv: W^PV as 1 × 2 blocks, or as its d × 2d entries.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Raises:
        TypeError: for another process or task.
        ValueError: a moment of order ≤ 6 does not exist; weights of other shapes; a name with another meaning; entries for a
            law whose coordinates are not exchangeable.
    """
    from sympy import Integer, Symbol

    check_problem(process, task, normalizer)
    dim = Symbol("d")
    pattern = pattern_of(w_kq, w_pv, process.dim, dim)
    if not process.law.exchangeable and not isinstance(pattern, BlockPattern):
        raise ValueError(
            f"w_kq: moments of {process.law.describe()} depend on the coordinate; give blocks instead of entries"
        )
    moments, lengths = MomentSymbols(process.law, process.dim), LengthSums(task, normalizer)
    size = dim if isinstance(pattern, BlockPattern) else Integer(process.dim)
    expression = size * tidy(moments((2,)) * lengths.total()) / 2
    for product, coefficient in _coefficients(pattern, moments, lengths).items():
        expression += product * tidy(coefficient)
    known = {symbol: _rational(value) for symbol, value in moments.values.items()}
    values = {dim: Integer(process.dim), **lengths.values, **known}
    return Formula(expression, pattern.ring.symbols[:-1], values, known)


def _coefficients(pattern: Pattern, moments: MomentSymbols, lengths: LengthSums) -> dict[Expr, Expr]:
    """Return the coefficient of every product of weights in half of the quadratic term minus the cross term."""
    from sympy import Add, Integer, Mul, Rational

    *weights, dim = pattern.ring.symbols
    found: dict[Expr, list[Expr]] = defaultdict(list)
    for term, power, factor in (("quadratic", 2, Rational(1, 2)), ("cross", 1, Integer(-1))):
        for (orders, numbers), polynomial in _gathered(term, pattern).items():
            common = factor * moments(orders) * lengths(numbers, power)
            parts: dict[Expr, list[Expr]] = defaultdict(list)
            for (*powers, degree), c in polynomial.terms():
                product = Mul(*(symbol**n for symbol, n in zip(weights, powers, strict=True)))
                parts[product].append(Rational(c.numerator, c.denominator) * dim**degree)
            for product, added in parts.items():
                found[product].append(common * Add(*added))
    return {product: Add(*added) for product, added in found.items()}


def _gathered(term: str, pattern: Pattern) -> dict[tuple[tuple[int, ...], tuple[int, ...]], PolyElement]:
    """Return the sum of the products of weights with the same moment and the same count."""
    table = counts(term)
    place = {partition: n for n, partition in enumerate(table.partitions)}
    found: dict[tuple, PolyElement] = defaultdict(lambda: pattern.ring.zero)
    for partition, labels, product in pattern.products(term):
        code = int("".join(map(str, labels)), 2)
        numbers = (*table.table[place[partition], code], *table.polynomial[place[partition], code])
        if any(numbers):
            orders = tuple(sorted(map(len, partition), reverse=True))
            found[orders, tuple(map(int, numbers))] += product
    return found
