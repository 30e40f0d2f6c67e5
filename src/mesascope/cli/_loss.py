"""`mesascope loss`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import DONE, FAILED, compute_in_64_bits, in_file, matrix_lines, print_json, results, say


@dataclass(frozen=True)
class Loss:
    """Population loss of given weights, and its gradient.

    Fields of SPEC; a number may be an exact rational such as "1/3":

    - law: a table with a kind: gaussian, sparse, rademacher, uniform (scale),
      constant (value), studentt (df, scale), mixture (parts),
      empirical (samples or file, joint), moments (moments)
    - dim, horizon
    - weights, if not all 1: a table from context lengths to weights
    - rho, if not "t-1": "t" or "1"
    - engine, if not "exact-moments": "enumeration" or "monte-carlo"
    - w_kq: 2 dim rows of 2 dim numbers; w_pv: dim rows of 2 dim numbers
    """

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file with law, dim, horizon, w_kq, w_pv; - reads standard input."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss, standard_error, grad_w_kq, grad_w_pv."""

    def run(self) -> int:
        """Compute and print; return the exit status."""
        from mesascope.studies import LossSpec, read_spec

        with in_file(self.spec):
            spec = read_spec(self.spec, LossSpec)
            compute_in_64_bits()
            result = spec.run()
        if self.json:
            print_json(result.model_dump())
        else:
            console = results()
            console.print("loss", f"{result.loss:.15g}", end="")
            console.print(f" ± {result.standard_error:.2g}" if result.standard_error else "")
            for name in ("w_kq", "w_pv"):
                console.print(f"gradient in {name}", style="bold")
                for line in matrix_lines(getattr(result, f"grad_{name}")):
                    console.print(line, markup=False)
        if result.finite:
            return DONE
        say("mesascope loss: the loss or its gradient leaves double precision; use smaller weights")
        return FAILED
