"""How `mesascope loss` and `mesascope flow` print what is found of any model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from mesascope.studies import ModelFlowResult, ModelLossResult


def with_error(value: float, standard_error: float) -> str:
    """A loss with its standard error, which is 0 where it is exact."""
    return f"{value:.15g} ± {standard_error:.2g}" if standard_error else f"{value:.15g}"


def print_test_loss(console: "Console", result: "ModelFlowResult | ModelLossResult") -> None:
    """Print the loss on the test process, if there is one."""
    if result.test_loss is not None:
        shown = with_error(result.test_loss, result.test_standard_error or 0)
        console.print(f"{'test loss':14}{shown}", markup=False)


def print_sizes(console: "Console", title: str, arrays: Mapping[str, Any]) -> None:
    """Print shape and largest entry of arrays, which may be large; --json prints all entries."""
    import numpy as np

    console.print(f"{title}, with shape and largest entry (--json prints all entries)", style="bold")
    for name, values in arrays.items():
        array = np.asarray(values)
        shape = " × ".join(map(str, array.shape)) or "a number"
        console.print(f"{name}  {shape}  {np.abs(array).max(initial=0):.5g}", markup=False)
