"""How formulas are expanded and written: sums over context lengths count as symbols, which sympy would else take apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sympy import Expr, Symbol


def without_sums(expression: Expr) -> tuple[Expr, dict[Symbol, Expr]]:
    """Return the expression with a symbol in place of every sum, every case and every weight w_t, and what they stand for."""
    from sympy import Dummy, Indexed, Piecewise, Sum

    found = expression.atoms(Sum, Piecewise)
    names = {one: Dummy() for one in sorted(found, key=str)}
    plain = expression.xreplace(names)
    names |= {one: Dummy() for one in sorted(plain.atoms(Indexed), key=str)}
    return expression.xreplace(names), {name: one for one, name in names.items()}


def tidy(expression: Expr) -> Expr:
    """Return a polynomial of moments and sums with d − 1, T − 2 and other factors of its coefficients kept together."""
    from sympy import Add, Mul, Poly, factor, factor_terms

    plain, sums = without_sums(expression)
    moments = sorted((one for one in plain.free_symbols if str(one).startswith("m_")), key=str)
    generators = [*moments, *sums]
    if not generators:
        return factor(plain)
    products = (
        factor(c) * Mul(*(g**n for g, n in zip(generators, powers, strict=True)))
        for powers, c in Poly(plain, *generators).terms()
    )
    return factor_terms(Add(*products)).xreplace(sums)


def tidy_quotient(expression: Expr) -> Expr:
    """Return a quotient of polynomials, both tidy and without common factors."""
    from sympy import factor, fraction

    plain, sums = without_sums(expression)
    above, below = (tidy(part.xreplace(sums)) for part in fraction(factor(plain)))
    return above / below
