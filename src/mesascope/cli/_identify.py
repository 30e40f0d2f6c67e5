"""`mesascope identify`."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._identify_along import VERDICT_COLOURS, drawn_if_possible, identify_along
from ._interrupt import stopped_by_interrupts
from ._output import (
    FAILED,
    InputError,
    compute_in_64_bits,
    in_file,
    print_headline,
    print_json,
    progress,
    progress_bar,
    results,
    say,
)
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.core import Progress
    from mesascope.records import IdentificationRecord, RankedRecord


@dataclass(frozen=True)
class Identify(PluginOption):
    """Identify the algorithm that a model runs in context.

    Learners are fitted to its predictions, and compared on other tasks and other data.

    Exit status: 0 for any verdict, 1 a run failed, 2 bad input.
    """

    spec: Annotated[Positional[str | None], arg(metavar="[SPEC]", help_behavior_hint="")] = None
    """TOML or JSON file with model, process, horizon or examples; - reads standard input."""
    model: Annotated[str | None, arg(metavar="PACKAGE.MODULE:NAME", help_behavior_hint="")] = None
    """A function or model, instead of SPEC; together with --process."""
    process: Annotated[str | None, arg(metavar="SPEC", help_behavior_hint="")] = None
    """TOML or JSON file with all fields except model (and run); - reads standard input."""
    along: Annotated[str | None, arg(metavar="RUN", help_behavior_hint="")] = None
    """Folder of a run of mesascope train: identify its algorithm at every checkpoint. Fields are those of SPEC without model
    and search, in the file of --process; those of the data are by default those of the run, tasks is by default 500."""
    figures: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder for figures (PDF, PNG, CSV) and their record, identification.json; with --along along.json and along.nc."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: verdict, candidates, ranking (learner, hyperparameters, distance, interval,
    contains), separated_by, mixtures, reasons, reading, process, task, tasks, seed, tolerance, level, spec,
    provenance, figures. With --along: headline, stages (step, verdict, candidates, ranking, mixtures, …), strategies,
    weights, sums, determined, unexplained, distances, changes, and the settings."""

    def run(self) -> int:
        """Check the input, identify, print and draw; return the exit status."""
        from mesascope.studies import FailedFlowError

        if self.figures is not None and not self.figures.strip():
            raise InputError("--figures is empty; name a folder")
        # absolute, before a module of the user may change the current directory
        figures = None if self.figures is None else Path(self.figures).absolute()
        if self.along is not None:
            if self.spec is not None or self.model is not None:
                raise InputError("--along names the model; give it alone, or with --process SPEC")
            return identify_along(self.along, self.process, figures, self.json)
        file, given = self._question()
        try:
            with stopped_by_interrupts(), progress_bar(progress()) as show:
                record = self._identified(file, given, figures, show)
        except FailedFlowError as error:
            say(f"mesascope identify: {error}")
            return FAILED
        drawn, status = drawn_if_possible(lambda: _draw(record, figures))
        if self.json:
            print_json({**record.model_dump(exclude={"curves"}), "figures": drawn})
        else:
            _print(record)
            for path in drawn:
                print(path)  # not through rich: a path must stay on one line
        return status

    def _question(self) -> tuple[str, dict[str, Any]]:
        """The file of the specification, and the fields that are not in it."""
        if self.spec is not None and self.model is None and self.process is None:
            return self.spec, {}
        if self.spec is None and self.model is not None and self.process is not None:
            return self.process, {"model": {"kind": "function", "name": self.model}}
        raise InputError(
            "give SPEC, or --model PACKAGE.MODULE:NAME with --process SPEC, or --along RUN; see mesascope identify --help"
        )

    def _identified(
        self, file: str, given: dict[str, Any], figures: Path | None, show: "Callable[[Progress], None]"
    ) -> "IdentificationRecord":
        from mesascope.core import Progress
        from mesascope.records import prepare_output
        from mesascope.studies import FunctionSpec, IdentifySpec, read_spec

        with in_file(file):
            spec = read_spec(file, IdentifySpec, given=given)
        compute_in_64_bits()
        with importable(file) if isinstance(spec.model, FunctionSpec) else nullcontext():
            with in_file(file):
                show(Progress(0, stage="building the model"))
                run = spec.build()
            if figures is not None:
                prepare_output(figures)  # before minutes of computing, not after
            with in_file(file):
                found = run.identify(show)
                if figures is not None:
                    show(Progress(0, stage="comparing for figures"))
                return run.record(found, curves=figures is not None)


def _draw(record: "IdentificationRecord", figures: Path | None) -> list[str]:
    if figures is None:
        return []
    from mesascope.report import draw_identification

    return [str(path) for path in draw_identification(record, figures)]


@contextmanager
def importable(file: str) -> Iterator[None]:
    """Let modules be imported from the current directory, as in `python -m`, and from that of the specification."""
    before = list(sys.path)
    sys.path[:0] = dict.fromkeys((os.getcwd(), str(Path(file).parent.absolute())))
    try:
        yield
    finally:
        sys.path[:] = before


def _print(record: "IdentificationRecord") -> None:
    """The verdict, its reasons, the table of all learners, and the algorithm read from the weights."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = results()
    print_headline(console, record.verdict, VERDICT_COLOURS[record.verdict], f": {record.headline}")
    for reason in record.reasons:
        console.print(Padding(Text(reason), (0, 0, 0, 2)))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("learner")
    table.add_column("distance", justify="right", no_wrap=True)
    table.add_column(f"{100 * record.level:g} % interval", no_wrap=True)
    symbols = any(entry.of_symbols for entry in record.ranking)
    for heading in ("nats", "variation") if symbols else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in record.ranking:
        name = Text(entry.learner, style="bold" if entry.learner in record.candidates else "")
        low, high = entry.interval
        more = entry.of_symbols
        others = (f"{more.excess_cross_entropy:.2g}", f"{more.total_variation:.2g}") if more else ()
        interval = f"{low:.2g} … {high:.2g}"
        table.add_row(
            Text.assemble(name, _hyperparameters(entry)), entry.distance_text(".3g"), interval, *others
        )
    console.print()
    console.print(table)
    console.print()
    if record.reading is not None:
        console.print(Text(f"weights: {record.reading.description}"))


def _hyperparameters(entry: "RankedRecord") -> str:
    """The hyperparameters, in a line below the name of the learner."""
    shown = ", ".join(f"{name} {_short(value)}" for name, value in entry.hyperparameters.items())
    return f"\n  {shown}" if shown else ""


def _short(value: Any) -> str:
    from mesascope.records import is_short

    if isinstance(value, dict):  # a complex number
        return f"{value['re']:.4g}{value['im']:+.4g}i"
    if not isinstance(value, list):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    if is_short(value):
        return f"[{', '.join(map(_short, value))}]"
    return f"{len(value)}×{len(value[0])} matrix" if isinstance(value[0], list) else f"{len(value)} numbers"
