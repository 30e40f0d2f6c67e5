"""The loop of a driver: submit runs to a runner, and record how they end."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mesascope.core import Progress
from mesascope.records import InUseError, RecordError

from ._attempts import attempts, has_advanced, why_unbatched
from ._execute import MACHINE, End, record_failure, recorded_end
from ._index_writer import IndexWriter
from ._prepare import Prepared
from ._runners import RESUMES, Report, Runner, SweepError
from ._status import Announcement

if TYPE_CHECKING:
    from mesascope.records import Store

_WAIT = 0.5  # seconds that the loop waits for a report
_CHECK_LOCKS = 1.0  # seconds between looks at runs that are computed elsewhere
_CLOSE_INDEX = 5.0  # seconds that a sweep that is stopped waits for the database
_MAX_LOST = 20  # workers that are lost in a row before they begin a run
_WINDOW = 200  # runs over which the rate is taken
_REMOVED = "it was removed from the store during the sweep; the same command computes it"


class Drive:
    """One sweep under way.

    Attributes:
        done: ids of the runs that were computed now.
        failed: run → why it failed.
        reused: ids of the runs that were computed before, or by another driver.
        unbatched: run → why it could not be computed together with the runs of its task.
        not_indexed: why some of these are not in the index; None if all are.
    """

    def __init__(
        self,
        prepared: Prepared,
        tasks: Sequence[tuple[str, ...]],
        store: "Store",
        runner: Runner,
        driver: str,
        retries: int,
        announcement: Announcement,
        progress: Callable[[Progress], None],
    ) -> None:
        self._store, self._runner, self._driver, self._retries = store, runner, driver, retries
        self._announcement, self._progress = announcement, progress
        self._total = len(prepared.left) + len(prepared.cached)
        self._pending = deque(tasks)
        self._attempts_before: dict[str, int] = {}  # of the runs that are submitted
        self._batched = {run for task in tasks if len(task) > 1 for run in task}
        self._locked: list[str] = []
        self._locks_checked = 0.0
        self._tries: Counter[str] = Counter()
        self._lost_workers = 0  # in a row, before they began a run
        self._index = IndexWriter(store)
        self._end_times: deque[float] = deque(maxlen=_WINDOW)
        self.done: set[str] = set()
        self.reused = {run for run, status in prepared.cached.items() if status == "done"}
        self.failed: dict[str, str] = {}
        self.unbatched: dict[str, str] = {}
        self.not_indexed: str | None = None
        for run in prepared.cached.keys() - self.reused:
            self._reuse(run)

    def run(self) -> None:
        """Go on until every run has ended.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; runs that have ended are in the store and the index.
            SweepError: it cannot go on.
        """
        try:
            self._publish()
            while self._pending or self._attempts_before or self._locked:
                self._submit()
                for report in self._runner.reports(_WAIT):
                    self._require_store()
                    self._handle(report)
                self._require_store()
                self._retry_unlocked()
                self._index.write()
                self._publish()
        except BaseException as error:
            self._runner.cancel()
            there = self._store.folders.are_there()
            if there:
                self._index.close(_CLOSE_INDEX)  # runs that are missing then are entered by the next command
            if isinstance(error, RecordError):
                raise SweepError(f"{error}; {RESUMES}" if there else str(error)) from error
            raise
        why = self._index.close()
        self.not_indexed = None if why is None else str(why)

    def _require_store(self) -> None:
        """End where the store is gone: what is written would make a folder that is none."""
        if not self._store.folders.are_there():
            raise RecordError(f"{self._store.folders.root}: the store was moved or removed during the sweep")

    def _submit(self) -> None:
        for _ in range(min(self._runner.free(), len(self._pending))):
            runs = self._pending.popleft()
            self._attempts_before |= {run: self._attempts(run) for run in runs}
            self._runner.submit(runs)

    def _attempts(self, run: str) -> int:
        return attempts(self._store.folders.folder(run))

    def _handle(self, report: Report) -> None:
        before = [self._attempts_before.pop(run) for run in report.runs]
        if report.ends is not None:
            for run, end in zip(report.runs, report.ends, strict=True):
                # cached: perhaps this driver computed it, and only the report was lost
                self._note(
                    run, recorded_end(self._store.folders, run, self._driver) if end == "cached" else end
                )
        elif report.lost and before == list(
            map(self._attempts, report.runs)
        ):  # they only waited at the worker
            self._lost_workers += 1
            if self._lost_workers > max(_MAX_LOST, 4 * len(self._attempts_before)):
                raise SweepError(
                    "workers die before they begin a run; look at their logs, and at their memory limit"
                )
            self._pending.append(report.runs)
        else:
            self._lost_workers = 0
            self._retry(report)

    def _note(self, run: str, end: End) -> None:
        """Take note of how a run ended."""
        match end:
            case "done":
                self.done.add(run)
                self._note_time(run)
            case "failed":
                self._note_failure(run)
                self._note_time(run)
            case "cached":
                self._reuse(run)
            case "locked":
                self._locked.append(run)

    def _note_time(self, run: str) -> None:
        self._lost_workers = 0
        self._index.add(run)
        self._end_times.append(time.monotonic())
        why = why_unbatched(self._store.folders.folder(run), self._driver) if run in self._batched else None
        if why is not None:
            self.unbatched[run] = why

    def _note_failure(self, run: str) -> None:
        record = self._store.folders.reusable(run)
        self.failed[run] = (record.error if record is not None else None) or "its record is damaged"

    def _reuse(self, run: str) -> None:
        """Take note of a run that was computed before, or by another driver."""
        record = self._store.folders.reusable(run)
        self._index.add(run)
        if record is not None and record.status == "done":
            self.reused.add(run)
        else:
            self._note_failure(run)

    def _retry(self, report: Report) -> None:
        """Try the runs of a failed task again, those of a batch one by one: any of them may be the cause."""
        for run in report.runs:
            end = recorded_end(self._store.folders, run, self._driver)
            if end != "locked":  # it had ended before its worker was lost
                self._note(run, end)
            elif len(report.runs) > 1:
                self._pending.append((run,))
            else:
                self._retry_or_fail(run, report)

    def _retry_or_fail(self, run: str, report: Report) -> None:
        """Try a run again, unless it was tried too often: then it is recorded as failed."""
        folders = self._store.folders
        if not folders.is_planned(run):
            self.failed[run] = _REMOVED
            self._note_time(run)
            return
        if has_advanced(folders.folder(run)):  # such as a training in jobs that are too short
            self._tries[run] = 0
        self._tries[run] += 1
        if self._tries[run] <= self._retries:
            self._pending.append((run,))
            return
        short, _, trace = report.error.partition("\n")
        if report.lost:
            short += f" {self._tries[run]} times while it computed this (killed, or out of memory)"
        try:
            record_failure(folders, run, MACHINE, short, trace or None)
            self._note(run, "failed")
        except InUseError:  # another driver tries it now
            self._locked.append(run)

    def _retry_unlocked(self) -> None:
        """Submit runs again that were locked and are free now."""
        now = time.monotonic()
        idle = not self._attempts_before and not self._pending
        if not self._locked or (now - self._locks_checked < _CHECK_LOCKS and not idle):
            return
        if idle:
            time.sleep(_CHECK_LOCKS / 5)
        self._locks_checked = now
        locked, self._locked = self._locked, []
        for run in locked:
            if self._store.folders.running(run):
                self._locked.append(run)
            else:
                self._pending.append((run,))

    def _publish(self) -> None:
        """Announce the progress in the store, and to the caller."""
        done, failed, reused = len(self.done), len(self.failed), len(self.reused)
        left, rate = self._total - done - failed - reused, self._rate()
        counts = {"done": done, "failed": failed, "reused": reused}
        seconds_left = left / rate if rate else None
        self._announcement.update(**counts, per_minute=60 * rate, seconds_left=seconds_left)
        values = {**counts, "dashboard": self._runner.dashboard}
        self._progress(
            Progress(
                self._total - left,
                self._total,
                "runs",
                rate or math.nan,
                "run" if self._runner.has_workers else "wait for workers",
                {name: value for name, value in values.items() if value},
            )
        )

    def _rate(self) -> float:
        """Runs in a second, over the last ones."""
        if len(self._end_times) < 2:
            return 0.0
        spent = time.monotonic() - self._end_times[0]
        return (len(self._end_times) - 1) / spent if spent > 0 else 0.0
