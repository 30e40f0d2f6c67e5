"""`mesascope loss`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._model_results import print_sizes, print_test_loss, with_error
from ._output import (
    DONE,
    FAILED,
    compute_in_64_bits,
    in_file,
    print_json,
    print_matrices,
    results,
    say,
)
from ._plugin import PluginOption


@dataclass(frozen=True)
class Loss(PluginOption):
    """Compute the population loss of given weights or of a model, and its gradient."""

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file: law, dim, horizon, w_kq, w_pv, or process and model; - reads standard input."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss, standard_error, grad_w_kq, grad_w_pv, or the gradient of a model."""

    def run(self) -> int:
        """Compute and print; return the exit status."""
        from mesascope.studies import LossResult, loss_spec, read_spec

        with in_file(self.spec):
            spec = read_spec(self.spec, loss_spec)
            compute_in_64_bits()
            result = spec.run()
        if self.json:
            print_json(result.model_dump())
        else:
            console = results()
            shown = spec.build_task().loss_text(with_error(result.loss, result.standard_error))
            if isinstance(result, LossResult):
                console.print("loss", shown)
                print_matrices(
                    console, {"gradient in w_kq": result.grad_w_kq, "gradient in w_pv": result.grad_w_pv}
                )
            else:
                console.print(f"{'loss':14}{shown}", markup=False)
                print_test_loss(console, result)
                console.print(f"{'gradient norm':14}{result.gradient_norm:.8g}")
                print_sizes(console, "gradient", result.gradient)
        if result.finite:
            return DONE
        say("mesascope loss: the loss or its gradient leaves double precision; use smaller weights")
        return FAILED
