"""Progress of `reproduce`: a live bar on terminals, a line for every finished claim elsewhere."""

from typing import TYPE_CHECKING, Any, Self

from ._output import progress, say

if TYPE_CHECKING:
    from mesascope.papers import Event
    from mesascope.records import Verdict

COLOURS: "dict[Verdict, str]" = {"verified": "green", "refuted": "bold red", "inconclusive": "yellow"}


class Watcher:
    """Shows on standard error how far `reproduce` is; use it in a `with` block.

    Attributes:
        at: what is under way: a claim's id or another stage; empty before the first.
    """

    def __init__(self) -> None:
        self.at = ""
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

    def watch(self, event: "Event") -> None:
        """Take note of an event of `mesascope.papers.reproduce`."""
        self.stage(event.claim.id)
        if self._bar:
            finished = event.index + (event.record is not None)
            self._bar.update(self._task, total=event.total, completed=finished)
        if event.record is None:
            return
        spent = "kept from before" if event.kind == "reused" else f"{event.record.seconds:.1f} s"
        spent += f"; again: {event.again}" if event.again else ""
        place = f"{event.index + 1:3}/{event.total}"
        line = f"{place}  {event.record.verdict:12}  {event.claim.id}  ({spent})"
        if self._bar:
            self._console.print(line, style=COLOURS[event.record.verdict], markup=False)
        else:
            say(line)
