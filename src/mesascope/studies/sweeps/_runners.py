"""Where runs are computed: what every such place can do, and the simplest one, this process."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Protocol

from ._execute import Ended, MachineError, StoreFullError
from ._together import execute_together

RESUMES = "what has ended is kept, and the same command resumes"


class SweepError(RuntimeError):
    """A sweep cannot go on; what has ended is kept, and the message says why and the fix."""


class SchedulerError(SweepError):
    """Nobody answers where the scheduler was said to be, or it cannot be started as it is configured: nothing was computed."""


class Report(NamedTuple):
    """How runs ended that were given together.

    Attributes:
        runs: their ids.
        ended: how each of them ended; None where nothing is known of them.
        error: what hindered them then, beginning with the name of the exception; may be of several lines.
        lost: whether the worker that had them was lost.
    """

    runs: tuple[str, ...]
    ended: tuple[Ended, ...] | None
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
        """How often more can be given to it now."""

    def give(self, runs: tuple[str, ...]) -> None:
        """Take one run, or several that are to be computed together."""

    def reports(self, seconds: float) -> list[Report]:
        """How runs ended meanwhile; waits for some for at most so long."""

    def cancel(self) -> None:
        """Forget the runs that were given."""


class InProcess:
    """This process, one run after the other."""

    def __init__(self, root: Path, search: Sequence[str], driver: str, batch: int = 1) -> None:
        self.dashboard: str | None = None
        self.started = True
        self._root, self._search, self._driver, self._batch = root, tuple(search), driver, batch
        self._given: list[tuple[str, ...]] = []

    def room(self) -> int:
        """Once."""
        return 1 - len(self._given)

    def give(self, runs: tuple[str, ...]) -> None:
        """Take one run, or several."""
        self._given.append(runs)

    def reports(self, seconds: float) -> list[Report]:
        """Compute what was given."""
        if not self._given:
            return []
        runs = self._given.pop()
        with _noticed_interrupts() as pressed:
            try:
                found = execute_together(
                    self._root,
                    runs,
                    self._batch,
                    search=self._search,
                    driver=self._driver,
                    alone=True,
                    stopped=lambda: bool(pressed),
                )
                return [Report(runs, found)]
            except StoreFullError as error:
                raise SweepError(f"{error}; {RESUMES}") from error
            except MachineError as error:
                return [Report(runs, None, str(error))]

    def cancel(self) -> None:
        """Nothing goes on beside this."""
        self._given.clear()


@contextmanager
def _noticed_interrupts() -> Iterator[list[object]]:
    """Notice Ctrl-C, and SIGTERM where it is handled.

    Compiled code that calls back into Python turns the exception that is raised then into another one.
    """
    pressed: list[object] = []
    with ExitStack() as undone:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if callable(before):
                    signal.signal(number, partial(_notice, pressed, before))
                    undone.callback(signal.signal, number, before)
        yield pressed


def _notice(
    pressed: list[object],
    before: Callable[[int, FrameType | None], Any],
    number: int,
    frame: FrameType | None,
) -> None:
    pressed.append(None)
    before(number, frame)
