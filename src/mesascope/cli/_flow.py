"""`mesascope flow`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._model_results import print_sizes, print_test_loss, with_error
from ._output import (
    DONE,
    FAILED,
    INTERRUPTED,
    compute_in_64_bits,
    in_file,
    print_headline,
    print_json,
    print_matrices,
    progress,
    progress_bar,
    results,
    say,
)
from ._plugin import PluginOption

if TYPE_CHECKING:
    from rich.console import Console

    from mesascope.processes import Task
    from mesascope.studies import FlowResult, ModelFlowResult


@dataclass(frozen=True)
class Flow(PluginOption):
    """Follow gradient flow or gradient descent from given initial weights."""

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file: law, dim, horizon, init, or process and model; - reads standard input."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss, gradient_norm, converged, time, steps, result, message, and w_kq, w_pv, product,
    limit_product, limit_reason, or of a model standard_error, test_loss, test_standard_error, weights; plateaus."""
    plateaus: FlagCreatePairsOff[bool] = False
    """Also look for the saddles that the flow visits: loss, index, order and rate of the escape, and the times at which the
    flow enters and leaves, with the predicted one; solver = "rodas4" is quick where it rests at saddles."""

    def run(self) -> int:
        """Solve and print; return the exit status."""
        from mesascope.core import Progress
        from mesascope.studies import flow_spec, follow_with_plateaus, read_spec

        with in_file(self.spec):
            spec = read_spec(self.spec, flow_spec)
            compute_in_64_bits()
            with progress_bar(progress()) as show:
                # They take minutes where the loss is sampled.
                show(Progress(0, stage="compiling, and taking the first steps"))
                result, found = follow_with_plateaus(spec, show) if self.plateaus else (spec.run(show), None)
        if self.json:
            more = {"plateaus": found.table() if found else []} if self.plateaus else {}
            print_json({**result.model_dump(), **more})
        else:
            _print(result, spec.build_task())
            if found is not None:
                _print_plateaus(found.table())
        if result.succeeded:
            return DONE
        say(f"mesascope flow: {result.result}: {result.message}")
        return INTERRUPTED if result.result == "interrupted" else FAILED


def _print(result: "FlowResult | ModelFlowResult", task: "Task") -> None:
    from mesascope.studies import FlowResult

    console = results()
    style = "bold green" if result.succeeded else "bold red"
    print_headline(console, result.result, style, f": {result.message}")
    error = 0.0 if isinstance(result, FlowResult) else result.standard_error
    lines = {
        "time": f"{result.time:.8g}",
        "steps": str(result.steps),
        "loss": task.loss_text(with_error(result.loss, error)),
        "gradient norm": f"{result.gradient_norm:.3e}",
    }
    for name, value in lines.items():
        console.print(f"{name:14}{value}", markup=False)
    if isinstance(result, FlowResult):
        _print_linear_attention(console, result)
    else:
        print_test_loss(console, result)
        print_sizes(console, "weights", result.weights)


def _print_plateaus(rows: "list[dict[str, float]]") -> None:
    """One line for every critical point."""
    console = results()
    if not rows:
        console.print("plateaus      none: the flow passes no critical point")
        return
    console.print("plateaus, with the order of the escape", style="bold")
    console.print("".join(f"{name:>11}" for name in rows[0]), markup=False)
    for row in rows:
        console.print("".join(f"{value:>11.5g}" for value in row.values()), markup=False)


def _print_linear_attention(console: "Console", result: "FlowResult") -> None:
    limit = f"{result.limit_product:.15g}  " if result.limit_product is not None else ""
    for name, value in {
        "a_j b_j": _products(result.product),
        "theory": f"{limit}({result.limit_reason})",
    }.items():
        console.print(f"{name:14}{value}", markup=False)
    print_matrices(console, {"w_kq": result.w_kq, "w_pv": result.w_pv})


def _products(products: list[float]) -> str:
    low, high = min(products), max(products)
    if abs(high - low) <= 1e-12 * abs(high):
        return f"{high:.15g}  (all {len(products)})"
    if len(products) <= 4:
        return "  ".join(f"{product:.10g}" for product in products)
    return f"{low:.10g} … {high:.10g}  ({len(products)} of them)"
