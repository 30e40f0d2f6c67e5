"""Runs on the workers of a Dask scheduler: few at a time, and only ids travel."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mesascope.records import RunFolders

from ._execute import MachineError, OtherCodeError, StoreFullError, how_it_ended
from ._runners import RESUMES, Report, SweepError
from ._worker import work

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD = 2  # runs per thread: one is computed, one waits
_LOOK_EVERY = 1.0  # seconds between questions about the workers


class OnDask:
    """The workers of a scheduler.

    Attributes:
        dashboard: the address of Dask's own page.
        started: whether a worker has come.
    """

    def __init__(
        self,
        client: "Client",
        keep: Callable[[], None],
        root: Path,
        search: Sequence[str],
        kind: str,
        driver: str,
        batch: int = 1,
    ) -> None:
        self.dashboard: str | None = client.dashboard_link
        self.started = False
        self._client, self._keep, self._kind = client, keep, kind
        self._root, self._search, self._driver, self._batch = str(root), tuple(search), driver, batch
        self._folders = RunFolders(root)
        self._futures: dict[tuple[str, ...], Future] = {}
        self._ended: SimpleQueue[tuple[str, ...]] = SimpleQueue()
        self._submitted = 0
        self._threads, self._looked = 0, -_LOOK_EVERY

    def room(self) -> int:
        """Enough to keep every thread busy."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY:
            self._keep()
            self._threads, self._looked = sum(self._client.nthreads().values()), now
            self.started |= self._threads > 0
        return max(1, _AHEAD * self._threads) - len(self._futures)

    def give(self, runs: tuple[str, ...]) -> None:
        """Submit one run, or several as one task."""
        self._submitted += 1
        key = f"{self._kind}-{runs[0]}-{self._submitted}"
        what = (self._root, runs, self._search, self._driver, self._batch)
        future = self._client.submit(work, *what, key=key, pure=False)
        self._futures[runs] = future
        future.add_done_callback(lambda _: self._ended.put(runs))

    def reports(self, seconds: float) -> list[Report]:
        """How runs ended meanwhile.

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
        if future.status == "finished":
            # asked of the folder: fetching what the worker returned takes longer, and fails if it dies now
            return Report(runs, tuple(how_it_ended(self._folders, run, self._driver) for run in runs))
        if future.status != "error":  # cancelled or lost: not by us
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
            f"a worker cannot run it: {type(error).__name__}: {error}; workers need mesascope and the folder {self._root}"
        )

    def cancel(self) -> None:
        """Withdraw what was submitted; runs that a foreign worker computes at the moment end there."""
        if self._futures:
            self._client.cancel(list(self._futures.values()), force=True)
            self._futures.clear()
