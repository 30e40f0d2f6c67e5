"""`mesascope loss`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import (
    DONE,
    FAILED,
    compute_in_64_bits,
    in_file,
    matrix_lines,
    print_json,
    results,
    say,
)
from ._plugin import PluginOption


@dataclass(frozen=True)
class Loss(PluginOption):
    """Compute the population loss of given weights, and its gradient."""

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
            error = f" ± {result.standard_error:.2g}" if result.standard_error else ""
            console.print("loss", spec.data()[1].loss_text(f"{result.loss:.15g}{error}"))
            for name in ("w_kq", "w_pv"):
                console.print(f"gradient in {name}", style="bold")
                for line in matrix_lines(getattr(result, f"grad_{name}")):
                    console.print(line, markup=False)
        if result.finite:
            return DONE
        say("mesascope loss: the loss or its gradient leaves double precision; use smaller weights")
        return FAILED
