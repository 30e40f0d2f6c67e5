"""`mesascope reproduce`, and its progress: a bar on terminals, one line for every finished claim."""

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._outcomes import COLOURS, error_of, print_changes, print_outcomes
from ._output import (
    DONE,
    FAILED,
    InputError,
    compute_in_64_bits,
    print_json,
    progress,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mesascope.papers import Change, Event, Reproduction
    from mesascope.records import ClaimRecord

_FIELDS = (
    *("id", "title", "statement", "source", "origin", "evidence", "outcome", "difference", "verdict"),
    *("parts", "measured", "expected", "tolerance", "criterion", "history", "setting", "seconds"),
)


@dataclass(frozen=True)
class Reproduce:
    """Check the claims of papers by computation, and draw their figures.

    The folder of the results is printed last; finished claims in it are reused.
    """

    claims: Annotated[
        Positional[tuple[str, ...]], arg(metavar="[PAPER[/CLAIM] ...]", help_behavior_hint="")
    ] = ()
    """Papers or single claims; by default all."""
    all: FlagCreatePairsOff[bool] = False
    """All claims; the same as no names."""
    preset: Literal["small", "full"] = "small"
    """small: minutes on a laptop; full: larger, the paper's own setting where a claim's evidence says so."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the results, with one folder for each preset; by default one in ./results."""
    against: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Compare outcomes with those of an earlier run, by its --out: the exit status is 0 if all are equal."""
    rerun: FlagCreatePairsOff[bool] = False
    """Check finished claims again."""
    workers: int = 0
    """Processes that check claims at the same time; 0: one for each core."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: claims (id, title, statement, source, origin, evidence, outcome, difference, verdict, parts,
    measured, expected, tolerance, criterion, history, setting, seconds, error, again), figures, preset, folder; with --against
    changes (id, then, now). The verdict is the outcome in one of three words: verified, refuted or inconclusive."""

    def run(self) -> int:
        """Check, draw and print; return the exit status."""
        if self.workers < 0:
            raise InputError(f"--workers {self.workers}: must be at least 0")
        if self.all and self.claims:
            raise InputError(f"--all and {self.claims[0]!r} exclude each other; leave out one")
        earlier = self._earlier()
        begin = time.monotonic()
        done, figures = self._reproduced()
        if done is None:
            return FAILED
        changed = _changed(done.records, earlier, self.claims)
        folder = str(done.folder.absolute())
        if self.json:
            found = {
                "claims": [_summary(record, done.stale.get(record.id)) for record in done.records],
                "figures": [str(path.absolute()) for path in figures],
                "preset": self.preset,
                "folder": folder,
            }
            print_json(found if changed is None else {**found, "changes": [vars(one) for one in changed]})
        else:
            print_outcomes(done.records, time.monotonic() - begin)
            if changed is not None:
                print_changes(changed, str(self.against))
            print(folder)  # not through rich: a path must stay on one line
        if changed is not None:
            return FAILED if changed else DONE
        return FAILED if done.contradicted or any(map(error_of, done.records)) else DONE

    def _earlier(self) -> "dict[str, str] | None":
        if self.against is None:
            return None
        from mesascope.papers import claims, earlier_outcomes

        claims(*self.claims)  # refuses unknown claims first
        return earlier_outcomes(self.against, self.preset)

    def _reproduced(self) -> "tuple[Reproduction | None, tuple[Path, ...]]":
        """The results and figures; None if a computation or a disk failed, which is printed."""
        compute_in_64_bits()
        from mesascope.core import cores
        from mesascope.papers import reproduce
        from mesascope.report import render_run

        with stopped_by_interrupts() as check_for_press, Watcher() as watcher:

            def watch(event: "Event") -> None:
                if event.kind != "progress":  # those come from threads of trainings
                    check_for_press()  # it may be the reason why a check failed
                watcher.watch(event)
                if event.kind == "done":  # while others are checked; what cannot be drawn is told at the end
                    with suppress(ValueError):
                        render_run(event.folder)

            try:
                done = reproduce(
                    *self.claims,
                    preset=self.preset,
                    out=self.out,
                    watch=watch,
                    rerun=self.rerun,
                    workers=self.workers or cores(),
                )
                watcher.stage("drawing figures")
                return done, render_run(done.folder)
            except ValueError as error:
                # before the first claim the input is bad; later a computation or a disk failed
                if not watcher.at or sys.flags.dev_mode:
                    raise
                failure = f"mesascope reproduce: {watcher.at}: {error}; finished claims are kept"
        say(failure)
        return None, ()


def _changed(
    records: "Sequence[ClaimRecord]", earlier: dict[str, str] | None, selection: tuple[str, ...]
) -> "list[Change] | None":
    if earlier is None:
        return None
    from mesascope.papers import changes

    return changes(records, earlier, selection)


def _summary(record: "ClaimRecord", again: str | None) -> dict[str, Any]:
    return {**{name: getattr(record, name) for name in _FIELDS}, "error": error_of(record), "again": again}


class Watcher:
    """Shows the progress of `reproduce` on standard error; use it in a `with` block.

    Attributes:
        at: the stage: a claim's id or another one; empty before the first.
    """

    def __init__(self) -> None:
        self.at = ""
        self._console = progress()
        self._bar = progress_bar(self._console)
        self._done = 0
        self._total: int | None = None

    def __enter__(self) -> Self:
        self._show_progress = self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def stage(self, name: str) -> None:
        """Show a stage."""
        self.at = name
        self._show(name)

    def _show(self, text: str) -> None:
        from mesascope.core import Progress

        self._show_progress(Progress(self._done, self._total, "claims", stage=text))

    def watch(self, event: "Event") -> None:
        """Show an event of `mesascope.papers.reproduce`."""
        if event.kind == "progress":
            self._show(f"{event.claim.id}: {event.progress}")
            return
        self._done, self._total = event.index + (event.record is not None), event.total
        self.stage(event.claim.id)
        if event.record is None:
            return
        spent = "cached" if event.kind == "reused" else f"{event.record.seconds:.1f} s"
        spent += f"; again: {event.stale}" if event.stale else ""
        place = f"{event.index + 1:3}/{event.total}"
        line = f"{place}  {event.record.outcome:28}  {event.claim.id}  ({spent})"
        if self._console.quiet:
            say(line)
        else:
            self._console.print(line, style=COLOURS[event.record.outcome], markup=False)
