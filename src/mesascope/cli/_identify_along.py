"""`mesascope identify --along`: the algorithm of a run at every checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ._interrupt import stopped_by_interrupts
from ._output import (
    DONE,
    FAILED,
    compute_in_64_bits,
    in_file,
    print_headline,
    print_json,
    progress,
    progress_bar,
    results,
    say,
)

if TYPE_CHECKING:
    from mesascope.records import AlongRecord

VERDICT_COLOURS = {"identified": "bold green", "mixture": "green", "ambiguous": "yellow", "none": "bold red"}


def identify_along(run: str, process: str | None, figures: Path | None, as_json: bool) -> int:
    """Identify, print and draw; return the exit status.

    Args:
        run: the folder of the run.
        process: a file with all other fields, if any.
        figures: folder for the figure and its record.
        as_json: whether to print one JSON object.
    """
    from mesascope.records import prepare_output
    from mesascope.studies import AlongSpec, parse_spec, read_spec

    file, given = run if process is None else process, {"run": str(Path(run).absolute())}
    with in_file(file):
        spec = parse_spec(given, AlongSpec) if process is None else read_spec(process, AlongSpec, given=given)
    compute_in_64_bits()
    with stopped_by_interrupts(), progress_bar(progress()) as show:
        with in_file(file):
            asked = spec.build()
        if figures is not None:
            prepare_output(figures)  # before minutes of computing, not after
        with in_file(file):
            record = asked.record(asked.identify_along(show))
    drawn, status = drawn_if_possible(lambda: _draw(record, figures))
    if as_json:
        print_json({**record.model_dump(), "figures": drawn})
    else:
        _print(record)
        for path in drawn:
            print(path)  # not through rich: a path must stay on one line
    return status


def drawn_if_possible(draw: Callable[[], list[str]]) -> tuple[list[str], int]:
    """Return the paths of what was drawn, and the exit status; without a path where a file cannot be written."""
    from mesascope.records import RecordError

    try:
        return draw(), DONE
    except RecordError as error:
        say(f"mesascope identify: {error}")
        return [], FAILED


def _draw(record: "AlongRecord", figures: Path | None) -> list[str]:
    if figures is None:
        return []
    from mesascope.report import draw_along

    return [str(path) for path in draw_along(record, figures)]


def _print(record: "AlongRecord") -> None:
    """The order of the strategies; verdict and weights at every checkpoint, with ? for weights that are not determined."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = results()
    print_headline(console, "along training", "bold", f": {record.headline}")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("algorithm", overflow="fold")
    for curve in record.weights:
        table.add_column(curve.name, justify="right", overflow="fold")
    table.add_column("unexplained", justify="right")
    for place, stage in enumerate(record.stages):
        determined = record.determined[place]
        weights = (f"{curve.value[place]:.2f}" if determined else "?" for curve in record.weights)
        verdict = Text(stage.verdict, style=VERDICT_COLOURS[stage.verdict])
        left = f"{100 * record.unexplained.value[place]:.3g} %"
        near = ", ".join(stage.candidates) or f"({stage.ranking[0].learner})"
        table.add_row(str(stage.step), verdict, near, *weights, left)
    console.print()
    console.print(table)
