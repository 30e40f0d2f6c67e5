"""`mesascope reproduce`."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._outcomes import error_of, print_changes, print_outcomes
from ._output import DONE, FAILED, InputError, compute_in_64_bits, print_json, say
from ._watch import Watcher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mesascope.papers import Change, Event, Reproduction
    from mesascope.records import ClaimRecord

_SHOWN = (
    *(
        "id",
        "title",
        "statement",
        "source",
        "origin",
        "evidence",
        "outcome",
        "difference",
        "verdict",
        "parts",
    ),
    *("measured", "expected", "tolerance", "criterion", "history", "setting", "seconds"),
)


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
    preset: Literal["small", "full"] = "small"
    """small: minutes on a laptop; full: larger, the paper's own setting where a claim's evidence says so."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the results, in which each preset has one of its own; by default one below ./results."""
    against: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Compare outcomes with those of an earlier run, by its --out: the exit status is 0 if all are what they were there."""
    rerun: FlagCreatePairsOff[bool] = False
    """Check again what is finished already."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: claims (id, title, statement, source, origin, evidence, outcome, difference, verdict, parts,
    measured, expected, tolerance, criterion, history, setting, seconds, error, again), figures, preset, folder; with --against
    changes (id, then, now). The verdict is the outcome in one of three words: verified, refuted or inconclusive."""

    def run(self) -> int:
        """Check, draw and print; return the exit status."""
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

        claims(*self.claims)  # what is wrong with them comes first, and nothing is computed yet
        return earlier_outcomes(self.against, self.preset)

    def _reproduced(self) -> "tuple[Reproduction | None, tuple[Path, ...]]":
        """What was found and drawn; nothing if a computation or a disk failed, which is told."""
        compute_in_64_bits()
        from mesascope.papers import reproduce
        from mesascope.report import render_run

        with stopped_by_interrupts() as check_for_press, Watcher() as watcher:

            def watch(event: "Event") -> None:
                if event.kind != "progress":  # that comes from threads of trainings
                    check_for_press()  # a check that failed may have done so for this
                watcher.watch(event)

            try:
                done = reproduce(
                    *self.claims, preset=self.preset, out=self.out, watch=watch, rerun=self.rerun
                )
                watcher.stage("drawing figures")
                return done, render_run(done.folder)
            except ValueError as error:
                # Before the first claim the input was bad; afterwards a computation or a disk failed.
                if not watcher.at or sys.flags.dev_mode:
                    raise
                failure = f"mesascope reproduce: {watcher.at}: {error}; what was finished is kept"
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
    return {**{name: getattr(record, name) for name in _SHOWN}, "error": error_of(record), "again": again}
