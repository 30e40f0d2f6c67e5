"""Where runs are computed: in this process, or by the workers of a Dask scheduler."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mesascope.records import RunFolders

from ._execute import End, MachineError, OtherCodeError, Request, StoreFullError, recorded_end
from ._together import execute_together
from ._worker import work

if TYPE_CHECKING:
    from distributed import Client, Future

RESUMES = "runs that have ended are kept, and the same command resumes"
_AHEAD = 2  # tasks for each thread: one is computed, one waits
_LOOK_EVERY = 1.0  # seconds between questions about the workers


class SweepError(RuntimeError):
    """A sweep cannot go on; runs that have ended are kept, and the message says why and the fix."""


class SchedulerError(SweepError):
    """The scheduler does not answer at its address, or cannot be started as it is configured: nothing was computed."""


class Report(NamedTuple):
    """How the runs of one task ended.

    Attributes:
        runs: their ids.
        ends: how each of them ended; None if the task failed as a whole.
        error: why it failed, beginning with the name of the exception; may have several lines.
        lost: whether it failed because its worker was lost.
    """

    runs: tuple[str, ...]
    ends: tuple[End, ...] | None
    error: str = ""
    lost: bool = False


class Runner(Protocol):
    """Computes the runs of the tasks that are submitted to it, and reports how they ended.

    Attributes:
        dashboard: address of a page about it, if it has one.
        has_workers: whether it has a worker now.
    """

    dashboard: str | None
    has_workers: bool

    def free(self) -> int:
        """How many more tasks it takes now."""

    def submit(self, runs: tuple[str, ...]) -> None:
        """Take a task: one run, or several that are to be computed together."""

    def reports(self, seconds: float) -> list[Report]:
        """The tasks that have ended since the last call; waits at most so long for one."""

    def cancel(self) -> None:
        """Forget the tasks that were submitted."""


class InProcess:
    """This process, one task after the other."""

    def __init__(self, root: Path, request: Request) -> None:
        self.dashboard: str | None = None
        self.has_workers = True
        self._root, self._request = root, request._replace(in_driver=True)
        self._tasks: list[tuple[str, ...]] = []

    def free(self) -> int:
        """One, or none while a task waits."""
        return 1 - len(self._tasks)

    def submit(self, runs: tuple[str, ...]) -> None:
        """Take a task."""
        self._tasks.append(runs)

    def reports(self, seconds: float) -> list[Report]:
        """Compute the task that waits."""
        if not self._tasks:
            return []
        runs = self._tasks.pop()
        with _noticed_interrupts() as pressed:
            try:
                request = self._request._replace(stopped=lambda: bool(pressed))
                return [Report(runs, execute_together(self._root, runs, request))]
            except StoreFullError as error:
                raise SweepError(f"{error}; {RESUMES}") from error
            except MachineError as error:
                return [Report(runs, None, str(error))]

    def cancel(self) -> None:
        """Forget the task that waits."""
        self._tasks.clear()


class OnDask:
    """The workers of a Dask scheduler. Only ids travel: workers read plans from the store, and write records into it.

    Dask's own `retries` and allowed failures are not used: they also count tasks that only waited at a lost worker, and
    forget their counts with the scheduler; the folders of the runs say which run was begun, and how often. Nor are its `wait`
    and `as_completed`: one leaves a waiting task behind for every future and call, the other waits without a time limit.

    Args:
        client: connected to the scheduler.
        replace_jobs: called now and then; replaces jobs that have ended.
        root: the folder of the store.
        kind: what the runs are; it names the tasks on Dask's page.
        request: how to compute them.
    """

    def __init__(
        self, client: "Client", replace_jobs: Callable[[], None], root: Path, kind: str, request: Request
    ) -> None:
        self.dashboard: str | None = client.dashboard_link
        self.has_workers = False
        self._client, self._replace_jobs, self._kind = client, replace_jobs, kind
        self._folders, self._request = RunFolders(root), request
        self._futures: dict[tuple[str, ...], Future] = {}
        self._ended: SimpleQueue[tuple[str, ...]] = SimpleQueue()
        self._submitted, self._threads, self._looked = 0, 0, -_LOOK_EVERY

    def free(self) -> int:
        """As many tasks as give every thread work."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY:
            self._replace_jobs()
            self._threads, self._looked = sum(self._client.nthreads().values()), now
            self.has_workers = self._threads > 0
        return max(1, _AHEAD * self._threads) - len(self._futures)

    def submit(self, runs: tuple[str, ...]) -> None:
        """Take a task."""
        self._submitted += 1
        key = f"{self._kind}-{runs[0]}-{self._submitted}"
        what = (str(self._folders.root), runs, self._request)
        self._futures[runs] = self._client.submit(work, *what, key=key, pure=False)
        self._futures[runs].add_done_callback(lambda _: self._ended.put(runs))

    def reports(self, seconds: float) -> list[Report]:
        """The tasks that have ended.

        Raises:
            SweepError: the scheduler is gone, or its workers cannot run mesascope.
        """
        found = []
        try:
            found.append(self._report(self._ended.get(timeout=seconds)))
            while True:
                found.append(self._report(self._ended.get_nowait()))
        except Empty:
            return found

    def _report(self, runs: tuple[str, ...]) -> Report:
        from distributed.scheduler import KilledWorker

        future = self._futures.pop(runs)
        if future.status in ("finished", "lost"):  # lost: it has finished, and its worker has gone since
            # read in the folders: fetching the result of the task takes longer, and fails if its worker dies now
            driver = self._request.driver
            return Report(runs, tuple(recorded_end(self._folders, run, driver) for run in runs))
        if future.status != "error":  # cancelled, and not by us
            raise SweepError("the scheduler is gone, or has dropped the runs; the same command resumes")
        error = future.exception()
        if isinstance(error, KilledWorker):
            return Report(runs, None, "KilledWorker: its worker process died", lost=True)
        if isinstance(error, MachineError):
            return Report(runs, None, str(error))
        if isinstance(error, StoreFullError):
            raise SweepError(f"{error}; {RESUMES}")
        if isinstance(error, OtherCodeError):
            raise SweepError(f"a worker has other code: {error}")
        raise SweepError(
            f"a worker cannot run it: {type(error).__name__}: {error}; workers need mesascope and the folder "
            f"{self._folders.root}"
        )

    def cancel(self) -> None:
        """Withdraw all tasks; a run that a worker of another scheduler computes at the moment ends there."""
        if self._futures:
            self._client.cancel(list(self._futures.values()), force=True)
            self._futures.clear()


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
