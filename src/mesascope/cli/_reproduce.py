"""`mesascope reproduce`."""

import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, FAILED, InputError, compute_in_64_bits, print_json, results, say
from ._watch import COLOURS, Watcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mesascope.records import ClaimRecord


@dataclass(frozen=True)
class Reproduce:
    """Check the claims of papers by computation, and draw their figures.

    The folder of the results is printed last; finished claims in it are reused.
    """

    claims: Annotated[
        Positional[tuple[str, ...]], arg(metavar="[PAPER[/CLAIM] ...]", help_behavior_hint="")
    ] = ()
    """Papers or single claims; without any, all of them."""
    all: FlagCreatePairsOff[bool] = False
    """Say in so many words that all of them are meant."""
    preset: Literal["quick", "paper"] = "quick"
    """quick: exact computation and small samples; paper: the paper's own settings."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the results; by default one below ./results."""
    rerun: FlagCreatePairsOff[bool] = False
    """Check again what is finished already."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: claims (id, statement, source, origin, measured, expected, tolerance, verdict,
    seconds, error), figures, preset, folder."""

    def run(self) -> int:
        """Check, draw and print; return the exit status."""
        if self.all and self.claims:
            raise InputError(f"--all and {self.claims[0]!r} exclude each other; leave out one")
        compute_in_64_bits()
        from mesascope.papers import reproduce
        from mesascope.report import render_run

        begin = time.monotonic()
        with stopped_by_interrupts(), Watcher() as watcher:
            try:
                done = reproduce(
                    *self.claims, preset=self.preset, out=self.out, watch=watcher.watch, rerun=self.rerun
                )
                watcher.stage("drawing figures")
                figures = render_run(done.folder)
            except ValueError as error:
                # Before the first claim the input was bad; afterwards a computation or a disk failed.
                if not watcher.at or sys.flags.dev_mode:
                    raise
                failure = f"mesascope reproduce: {watcher.at}: {error}; what was finished is kept"
                done = None
        if done is None:
            say(failure)
            return FAILED
        folder = str(done.folder.absolute())
        if self.json:
            print_json(
                {
                    "claims": [_summary(record) for record in done.records],
                    "figures": [str(path.absolute()) for path in figures],
                    "preset": self.preset,
                    "folder": folder,
                }
            )
        else:
            _print(done.records, time.monotonic() - begin)
            print(folder)  # not through rich: a path must stay on one line
        return FAILED if done.refuted or any(map(_error, done.records)) else DONE


def _summary(record: "ClaimRecord") -> dict[str, Any]:
    fields = (
        "id",
        "statement",
        "source",
        "origin",
        "measured",
        "expected",
        "tolerance",
        "verdict",
        "seconds",
    )
    return {**{name: getattr(record, name) for name in fields}, "error": _error(record)}


def _error(record: "ClaimRecord") -> str | None:
    """What kept a claim from being checked, if something did."""
    error = record.details.get("error")
    return None if error is None else str(error)


def _print(records: "Sequence[ClaimRecord]", seconds: float) -> None:
    """The table of verdicts, and how many there are of each."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = results()
    table = Table("verdict", "claim", box=box.SIMPLE_HEAD, padding=(0, 2, 1, 0))
    for record in records:
        colour, error = COLOURS[record.verdict], _error(record)
        found = f"measured {_short(record.measured)}   expected {_short(record.expected)}"
        within = "" if record.tolerance is None else f"   tolerance {_short(record.tolerance)}"
        table.add_row(
            Text(record.verdict, style=colour),
            Text.assemble(
                (f"{record.id}\n", "bold"),
                "" if record.verdict == "verified" and len(records) > 5 else f"{record.statement}\n",
                (f"could not be checked: {error}" if error else f"{found}{within}", colour),
            ),
        )
    console.print(table)
    counts = Counter(record.verdict for record in records)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in COLOURS if counts[verdict])
    console.print(f"{told or 'nothing to check'}; {seconds:.1f} s")


def _short(value: Any) -> str:
    """Write a measured or expected value briefly: numbers to six digits, long lists by their ends."""
    match value:
        case bool() | None:
            return str(value).lower()
        case float() | int():
            return f"{value:.6g}"
        case [first, _, _, *_, last]:
            return f"{_short(first)}, …, {_short(last)} ({len(value)})"
        case list() | tuple():
            return ", ".join(map(_short, value))
        case dict():
            return ", ".join(f"{name}: {_short(one)}" for name, one in value.items())
        case _:
            return str(value)
