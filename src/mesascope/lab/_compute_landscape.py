"""The saddles on the way of a flow, and the loss of a setting as a formula, computed in a worker's process."""

from __future__ import annotations

from typing import Any

from mesascope.dynamics import real_vector
from mesascope.studies import FlowSpec, FormulaSpec, ModelFlowSpec, follow_with_plateaus

from ._jobs import Report

Result = dict[str, Any]
_SHARED = ("plugins", "law", "dim", "horizon", "weights", "rho")  # what a loss depends on
_DIGITS = 5
_MAX_IMPLICIT = 512  # most weights for which a Jacobian in every step is cheap


def saddles(spec: FlowSpec | ModelFlowSpec, progress: Report) -> Result:
    """The critical points that the flow passes, the last where it rests: `table` of plateaus, and their `figure`."""
    progress("the flow, and the saddles on its way")
    result, found = follow_with_plateaus(_with_solver(spec), lambda now: progress(now.describe()))
    if result.result == "interrupted":
        raise KeyboardInterrupt
    if found is None:
        return {"table": [], "figure": None, "message": result.message}
    return {"table": found.table(), "figure": found.figure(), "message": result.message}


def _with_solver(spec: FlowSpec | ModelFlowSpec) -> FlowSpec | ModelFlowSpec:
    """The flow with the solver that rests at saddles in few steps, if the model is small enough for it."""
    if isinstance(spec, FlowSpec):
        return spec
    weights = real_vector(spec.build().model)[0].size
    return spec if weights > _MAX_IMPLICIT else spec.model_copy(update={"solver": "rodas4"})


def derivation(spec: FlowSpec, progress: Report) -> Result:
    """The loss of a I, b I as a formula, and where it is least, in symbols and in numbers: MathML by name."""
    from sympy import sympify

    progress("deriving the formula")
    written = FormulaSpec.model_validate({name: getattr(spec, name) for name in _SHARED}).run()
    formulas = {"L": written.loss, **(written.critical_products or {})}
    return {
        "symbols": {name: _typeset(name, sympify(one.sympy)) for name, one in formulas.items()},
        "numbers": {
            name: _typeset(name, sympify(one.numbers).evalf(_DIGITS)) for name, one in formulas.items()
        },
        "values": {symbol: value for symbol, value in written.values.items() if symbol.isidentifier()},
    }


def _typeset(name: str, expression: Any) -> str:
    """An equation as presentation MathML."""
    from sympy import Eq, Mul, Symbol, mathml

    left = Mul(*map(Symbol, name.split("*")))
    equation = str(mathml(Eq(left, expression, evaluate=False), printer="presentation"))
    return equation.replace("<mo>-</mo>", "<mo>−</mo>")
