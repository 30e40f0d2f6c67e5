"""Progress of `reproduce`: a live bar on terminals, a line for every finished claim elsewhere."""

import time
from typing import TYPE_CHECKING, Any, Self

from ._output import progress, say

if TYPE_CHECKING:
    from mesascope.papers import Event
    from mesascope.records import Outcome

COLOURS: "dict[Outcome, str]" = {
    "holds": "green",
    "holds with a difference": "cyan",
    "contradicted": "bold red",
    "not reproduced at this scale": "magenta",
    "undecided": "yellow",
}

_SILENCE = 60.0  # seconds between two lines of progress in a log


class Watcher:
    """Shows on standard error how far `reproduce` is; use it in a `with` block.

    Attributes:
        at: what is under way: a claim's id or another stage; empty before the first.
    """

    def __init__(self) -> None:
        self.at = ""
        self._told = time.monotonic()
        self._console = progress()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._console.quiet:
            from rich import progress as rich

            columns = (
                rich.SpinnerColumn(),
                rich.MofNCompleteColumn(),
                rich.TimeElapsedColumn(),
                rich.TextColumn("{task.description}", markup=False),
            )
            self._bar = rich.Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def stage(self, name: str) -> None:
        """Say what is under way now."""
        self.at = name
        if self._bar:
            self._bar.update(self._task, description=name)

    def _progress(self, event: "Event") -> None:
        """How far a training inside a claim is; where there is no terminal, at most once a minute."""
        line = f"{event.claim.id}: {event.progress}"
        if self._bar:
            self._bar.update(self._task, description=line)
        elif time.monotonic() - self._told >= _SILENCE:
            self._told = time.monotonic()
            say(line)

    def watch(self, event: "Event") -> None:
        """Take note of an event of `mesascope.papers.reproduce`."""
        if event.kind == "progress":
            self._progress(event)
            return
        self.stage(event.claim.id)
        if self._bar:
            finished = event.index + (event.record is not None)
            self._bar.update(self._task, total=event.total, completed=finished)
        if event.record is None:
            return
        spent = "cached" if event.kind == "reused" else f"{event.record.seconds:.1f} s"
        spent += f"; again: {event.stale}" if event.stale else ""
        place = f"{event.index + 1:3}/{event.total}"
        line = f"{place}  {event.record.outcome:28}  {event.claim.id}  ({spent})"
        if self._bar:
            self._console.print(line, style=COLOURS[event.record.outcome], markup=False)
        else:
            say(line)
