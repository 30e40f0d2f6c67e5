"""Specifications of formulas: the population loss in symbols."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from mesascope.specs import SpecError, error_path

from ._problem import ProblemSpec

if TYPE_CHECKING:
    from sympy import Expr

    from mesascope.objectives import Formula

_LONGEST = 3322  # binary digits, 1000 decimal ones
_DIGITS = 30


class Symbolic(BaseModel):
    """An expression in symbols.

    Attributes:
        text: on one line.
        latex: in LaTeX, without dollars.
        sympy: as sympy writes it for `sympy.sympify`.
        numbers: with the numbers of the specification for all but the weights: rational, or 30 digits of those that have more
            than 1000.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    latex: str
    sympy: str
    numbers: str


class FormulaResult(BaseModel):
    """The result of `FormulaSpec.run`.

    Attributes:
        loss: L.
        contractions: the summands of L for any weights, see `objectives.contractions`; none for a law whose coordinates are
            not exchangeable.
        weights: the names of its weights.
        values: the numbers of the specification for every other symbol and sum in it.
        critical_products: products of weights at the critical point where none is 0; none if the loss does not depend on
            products alone.
    """

    model_config = ConfigDict(frozen=True)

    loss: Symbolic
    contractions: list[str]
    weights: list[str]
    values: dict[str, str]
    critical_products: dict[str, Symbolic] | None


class FormulaSpec(ProblemSpec):
    """The population loss of one layer of linear attention, as a formula.

    Attributes:
        w_kq: W^KQ as 2 × 2 blocks, or as 2d × 2d entries. A block is "a" for a I, or ["a", "c"] with c off the diagonal;
            entries and what is in blocks are numbers or names of symbols. When left out, [[0, 0], ["a", 0]].
        w_pv: W^PV as 1 × 2 blocks, or as d × 2d entries. When left out, [["b", 0]].
    """

    w_kq: Any = None
    w_pv: Any = None

    @model_validator(mode="after")
    def _exact_engine(self) -> Self:
        if self.engine.kind != "exact-moments":
            raise SpecError("a formula is exact; leave it out", "engine")
        return self

    def build(self) -> "Formula":
        """Return the formula.

        Raises:
            SpecError: the law lacks moments, or weights or their names cannot be used.
        """
        from mesascope.objectives import formula

        process, task = self.data()
        given = {"w_kq": self.w_kq, "w_pv": self.w_pv}
        with error_path():
            return formula(
                process,
                task,
                **{name: rows for name, rows in given.items() if rows is not None},
                normalizer=self.rho,
            )

    def run(self) -> FormulaResult:
        """Derive the formula, and its critical point if it has the form for it.

        Raises:
            SpecError: as for `build`.
        """
        from mesascope.objectives import contractions

        found = self.build()
        try:
            products = {
                str(product): _written(found, value) for product, value in found.critical_products().items()
            }
        except ValueError:
            products = None
        process, task = self.data()
        exchangeable = process.law.exchangeable
        summands = contractions(process, task, normalizer=self.rho) if exchangeable else ()
        return FormulaResult(
            contractions=[one.text for one in summands],
            loss=_written(found, found.expression),
            weights=[str(one) for one in found.weights],
            values={str(symbol): _shown(value) for symbol, value in found.values.items()},
            critical_products=products,
        )


def _written(formula: "Formula", expression: "Expr") -> Symbolic:
    from sympy import latex, srepr

    return Symbolic(
        text=str(expression),
        latex=latex(expression),
        sympy=srepr(expression),
        numbers=_shown(formula.numbers(expression).expand()),
    )


def _shown(expression: "Expr") -> str:
    """Return an expression with decimals in place of rational numbers that are too long to read or to print."""
    from sympy import Rational

    long = {
        one: one.evalf(_DIGITS)
        for one in expression.atoms(Rational)
        if max(abs(one.p), one.q).bit_length() > _LONGEST
    }
    return str(expression.xreplace(long))
