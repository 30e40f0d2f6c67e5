"""`mesascope flow`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import (
    DONE,
    FAILED,
    INTERRUPTED,
    compute_in_64_bits,
    in_file,
    matrix_lines,
    print_headline,
    print_json,
    progress,
    progress_bar,
    results,
    say,
)
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.processes import Task
    from mesascope.studies import FlowResult


@dataclass(frozen=True)
class Flow(PluginOption):
    """Follow gradient flow or gradient descent from given initial weights."""

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file with law, dim, horizon, init; - reads standard input."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: w_kq, w_pv, loss, product, limit_product, gradient_norm,
    converged, time, steps, result, message."""

    def run(self) -> int:
        """Solve and print; return the exit status."""
        from mesascope.core import Progress
        from mesascope.studies import FlowSpec, read_spec

        with in_file(self.spec):
            spec = read_spec(self.spec, FlowSpec)
            compute_in_64_bits()
            with progress_bar(progress()) as show:
                # They take minutes where the loss is sampled.
                show(Progress(0, stage="compiling, and taking the first steps"))
                result = spec.run(show)
        if self.json:
            print_json(result.model_dump())
        else:
            _print(result, spec.data()[1])
        if result.succeeded:
            return DONE
        say(f"mesascope flow: {result.result}: {result.message}")
        return INTERRUPTED if result.result == "interrupted" else FAILED


def _print(result: "FlowResult", task: "Task") -> None:
    console = results()
    style = "bold green" if result.succeeded else "bold red"
    print_headline(console, result.result, style, f": {result.message}")
    lines = {
        "time": f"{result.time:.8g}",
        "steps": str(result.steps),
        "loss": task.loss_text(f"{result.loss:.15g}"),
        "gradient norm": f"{result.gradient_norm:.3e}",
        "a_j b_j": _products(result.product),
        "theory": (f"{result.limit_product:.15g}  " if result.limit_product is not None else "")
        + f"({result.limit_reason})",
    }
    for name, value in lines.items():
        console.print(f"{name:14}{value}", markup=False)
    for name in ("w_kq", "w_pv"):
        console.print(name, style="bold")
        for line in matrix_lines(getattr(result, name)):
            console.print(line, markup=False)


def _products(products: list[float]) -> str:
    low, high = min(products), max(products)
    if abs(high - low) <= 1e-12 * abs(high):
        return f"{high:.15g}  (all {len(products)})"
    if len(products) <= 4:
        return "  ".join(f"{product:.10g}" for product in products)
    return f"{low:.10g} … {high:.10g}  ({len(products)} of them)"
