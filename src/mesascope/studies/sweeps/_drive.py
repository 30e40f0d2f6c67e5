"""The loop of a driver: give runs to workers, and record how they end."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mesascope.core import Progress
from mesascope.records import InUseError, RecordError

from ._attempts import attempts, has_advanced, why_apart
from ._drivers import Announcement
from ._entering import Entering
from ._execute import MACHINE, Ended, Stopwatch, how_it_ended
from ._prepare import Prepared
from ._runners import RESUMES, Report, Runner, SweepError

if TYPE_CHECKING:
    from mesascope.records import Store

_TICK = 0.5  # seconds that are waited for a report
_LOOK_AGAIN = 1.0  # seconds between looks at what somebody else computes
_LAST_WORDS = 5.0  # seconds that a sweep that is stopped waits for the database
_MAX_LOST = 20  # runs in a row whose workers were lost before any was begun
_WINDOW = 200  # runs over which the rate is taken
_REMOVED = "somebody removed it from the store while the sweep was under way; the same command computes it"


class Drive:
    """One sweep under way.

    Attributes:
        done: ids computed now.
        failed: why every run that failed did.
        reused: ids that were done before, or by somebody else.
        apart: of every run that could not be computed together with those it was given with, what hindered it.
        not_indexed: why the index lacks some of these; None where it has all.
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
        tell: Callable[[Progress], None],
    ) -> None:
        self._store, self._runner, self._driver, self._retries = store, runner, driver, retries
        self._announcement, self._tell = announcement, tell
        self._total = len(prepared.left) + len(prepared.cached)
        self._pending, self._given = deque(tasks), dict[str, int]()
        self._together = {run for task in tasks if len(task) > 1 for run in task}
        self._locked: list[str] = []
        self._looked = 0.0
        self._tries: Counter[str] = Counter()
        self._vain = 0
        self._entering = Entering(store)
        self._ends: deque[float] = deque(maxlen=_WINDOW)
        self.done: set[str] = set()
        self.reused = {run for run, state in prepared.cached.items() if state == "done"}
        self.failed: dict[str, str] = {}
        self.apart: dict[str, str] = {}
        self.not_indexed: str | None = None
        for run in prepared.cached.keys() - self.reused:
            self._reuse(run)

    def run(self) -> None:
        """Until every run has ended.

        Raises:
            KeyboardInterrupt: somebody pressed Ctrl-C; what has ended is kept and in the index.
            SweepError: it cannot go on.
        """
        try:
            self._say()
            while self._pending or self._given or self._locked:
                self._give()
                reports = self._runner.reports(_TICK)
                for report in reports:
                    self._take(report)
                self._look_again()
                self._entering.go_on()
                self._say()
        except BaseException as error:
            self._runner.cancel()
            self._entering.end(_LAST_WORDS)  # else the next command does it: the folders have it all
            if isinstance(error, RecordError):
                raise SweepError(f"{error}; {RESUMES}") from error
            raise
        why = self._entering.end()
        self.not_indexed = None if why is None else str(why)

    def _give(self) -> None:
        for _ in range(self._runner.room()):
            if not self._pending:
                return
            runs = self._pending.popleft()
            self._given |= {run: attempts(self._store.folders.folder(run)) for run in runs}
            self._runner.give(runs)

    def _take(self, report: Report) -> None:
        before = [self._given.pop(run) for run in report.runs]
        if report.ended is None:
            now = [attempts(self._store.folders.folder(run)) for run in report.runs]
            self._again(report, begun=now != before)
            return
        for run, how in zip(report.runs, report.ended, strict=True):
            # cached: perhaps computed by us, and only the report was lost
            self._settle(
                run, how_it_ended(self._store.folders, run, self._driver) if how == "cached" else how
            )

    def _settle(self, run: str, how: Ended) -> None:
        match how:
            case "done":
                self.done.add(run)
                self._ended(run)
            case "failed":
                self._fail(run)
                self._ended(run)
            case "cached":
                self._reuse(run)
            case "locked":
                self._locked.append(run)

    def _ended(self, run: str) -> None:
        self._vain = 0
        self._entering.add(run)
        self._ends.append(time.monotonic())
        why = why_apart(self._store.folders.folder(run), self._driver) if run in self._together else None
        if why is not None:
            self.apart[run] = why

    def _fail(self, run: str) -> None:
        record = self._store.folders.run(run)
        self.failed[run] = (record.error if record is not None else None) or "its record is damaged"

    def _reuse(self, run: str) -> None:
        """Record a run that somebody else has computed."""
        record = self._store.folders.run(run)
        self._entering.add(run)
        if record is not None and record.state == "done":
            self.reused.add(run)
        else:
            self._fail(run)

    def _again(self, report: Report, begun: bool) -> None:
        """Try runs again that nothing came of; at last, they have failed.

        Runs that only waited at a lost worker are not blamed, nor are those that were together.
        """
        if report.lost and not begun:
            self._vain += 1
            if self._vain > max(_MAX_LOST, 4 * len(self._given)):
                raise SweepError(
                    "workers die before they begin a run; look at their logs, and at their memory limit"
                )
            self._pending.append(report.runs)
            return
        self._vain = 0
        for run in report.runs:
            how = how_it_ended(self._store.folders, run, self._driver)
            if how != "locked":  # the worker was lost before it could say so
                self._settle(run, how)
            elif len(report.runs) > 1:
                self._pending.append((run,))
            else:
                self._blame(run, report)

    def _blame(self, run: str, report: Report) -> None:
        """Try a run again, or record that it has failed."""
        if not self._store.folders.is_planned(run):
            self.failed[run] = _REMOVED
            self._ended(run)
            return
        if has_advanced(self._store.folders.folder(run)):  # such as a training in jobs that are too short
            self._tries[run] = 0
        self._tries[run] += 1
        if self._tries[run] <= self._retries:
            self._pending.append((run,))
            return
        try:
            self._record_failure(run, report)
        except InUseError:  # somebody else tries it now
            self._locked.append(run)

    def _record_failure(self, run: str, report: Report) -> None:
        folders = self._store.folders
        short, _, trace = report.error.partition("\n")
        if report.lost:
            short += f" {self._tries[run]} times while it computed this (killed, or out of memory)"
        with folders.holding(run):
            watch = Stopwatch(attempts(folders.folder(run)))
            record = watch.record(folders.planned(run), {"failure": MACHINE}, short, trace or None)
            folders.finish(record)
        self._fail(run)
        self._ended(run)

    def _look_again(self) -> None:
        """Give again what was locked and is free now."""
        now = time.monotonic()
        idle = not self._given and not self._pending
        if not self._locked or (now - self._looked < _LOOK_AGAIN and not idle):
            return
        if idle:
            time.sleep(_LOOK_AGAIN / 5)
        self._looked = now
        locked, self._locked = self._locked, []
        for run in locked:
            if self._store.folders.running(run):
                self._locked.append(run)
            else:
                self._pending.append((run,))

    def _say(self) -> None:
        done, failed, reused = len(self.done), len(self.failed), len(self.reused)
        left, rate = self._total - done - failed - reused, self._rate()
        counts = {"done": done, "failed": failed, "reused": reused}
        self._announcement.say(**counts, per_minute=60 * rate, seconds_left=left / rate if rate else None)
        values = {**counts, "dashboard": self._runner.dashboard}
        now = Progress(
            self._total - left,
            self._total,
            "runs",
            rate or math.nan,
            "run" if self._runner.started else "start workers",
            {name: value for name, value in values.items() if value},
        )
        self._tell(now)

    def _rate(self) -> float:
        """Runs in a second, over the last ones."""
        if len(self._ends) < 2:
            return 0.0
        spent = time.monotonic() - self._ends[0]
        return (len(self._ends) - 1) / spent if spent > 0 else 0.0
