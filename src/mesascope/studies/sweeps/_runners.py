"""Where runs are computed: what every such place can do, and the simplest one, this process."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol

from ._execute import Ended, MachineError, execute


class SweepError(RuntimeError):
    """A sweep cannot go on; what has ended is kept, and the message says why and the mend."""


class Report(NamedTuple):
    """How one run ended.

    Attributes:
        run: its id.
        ended: how it ended; None where nothing came of it.
        error: what hindered it then, beginning with the name of the exception; may be of several lines.
        lost: whether the worker that had it was lost.
    """

    run: str
    ended: Ended | None
    error: str = ""
    lost: bool = False


class Runner(Protocol):
    """Where runs are computed. Runs are given to it, and it reports how they ended.

    Attributes:
        dashboard: address of a page about it, if it has one.
        started: whether there is somebody to compute.
    """

    dashboard: str | None
    started: bool

    def room(self) -> int:
        """How many more runs it takes now."""

    def give(self, run: str) -> None:
        """Take one run."""

    def reports(self, seconds: float) -> list[Report]:
        """How runs ended meanwhile; waits for some for at most so long."""

    def cancel(self) -> None:
        """Forget the runs that were given."""


class InProcess:
    """This process, one run after the other."""

    def __init__(self, root: Path, search: Sequence[str], driver: str) -> None:
        self.dashboard: str | None = None
        self.started = True
        self._root, self._search, self._driver = root, tuple(search), driver
        self._given: list[str] = []

    def room(self) -> int:
        """One run."""
        return 1 - len(self._given)

    def give(self, run: str) -> None:
        """Take one run."""
        self._given.append(run)

    def reports(self, seconds: float) -> list[Report]:
        """Compute it."""
        if not self._given:
            return []
        run = self._given.pop()
        with _noticed_interrupts() as pressed:
            try:
                found = execute(
                    self._root, run, search=self._search, driver=self._driver, stopped=lambda: bool(pressed)
                )
                return [Report(run, found)]
            except MachineError as error:
                return [Report(run, None, str(error))]

    def cancel(self) -> None:
        """Nothing goes on beside this."""
        self._given.clear()


@contextmanager
def _noticed_interrupts() -> Iterator[list[object]]:
    """Notice Ctrl-C: compiled code that calls back into Python turns its exception into another one."""
    pressed: list[object] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield pressed
        return

    def notice(number: int, frame: FrameType | None) -> None:
        pressed.append(None)
        before(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
