"""`mesascope formula`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import DONE, in_file, print_json, results
from ._plugin import PluginOption


@dataclass(frozen=True)
class FormulaCommand(PluginOption):
    """Write the exact population loss in symbols: weights, d, T and moments of the law.

    On the diagonal, and wherever else the loss depends on products of two weights alone, its critical point
    is solved for, too. The numbers below a formula are those of SPEC, and rational.
    """

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file: law, dim, horizon, and w_kq, w_pv with names of symbols; - reads standard input."""
    contractions: FlagCreatePairsOff[bool] = False
    """Print the summands of the loss of any weights, too; in sums over i, j, … no two indices are equal."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss and critical_products, each with text, latex, sympy, numbers; contractions, weights,
    values."""

    def run(self) -> int:
        """Derive and print; return the exit status."""
        from mesascope.studies import FormulaSpec, read_spec

        with in_file(self.spec):
            spec = read_spec(self.spec, FormulaSpec)
            result = spec.run()
        if self.json:
            print_json(result.model_dump())
            return DONE
        console = results()
        shown = {"L": result.loss, **(result.critical_products or {})}
        for name, formula in shown.items():
            for line in (f"{name} = {formula.text}", f"  = {formula.numbers}"):
                console.print(line, markup=False, soft_wrap=True)
        for summand in result.contractions if self.contractions else ():
            console.print(summand, markup=False, soft_wrap=True)
        for symbol, value in result.values.items():
            console.print(f"{symbol} = {value}", markup=False, soft_wrap=True)
        return DONE
