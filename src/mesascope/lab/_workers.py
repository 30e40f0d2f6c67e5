"""A few processes beside the event loop that do jobs, owners in turn; each can be stopped, and is replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Any

from mesascope.core import cores
from mesascope.specs import default_plugins
from mesascope.studies import SpecError

from ._jobs import Job, JobCancelledError, JobFailedError
from ._worker import STOP, serve

_POLL = 0.01  # seconds between two checks of whether a running job is still wanted
_LOST = "its process ended, perhaps for lack of memory"
_MAX_WAIT = 0.4  # seconds that a job waits for the process with its programs, before another takes it


def quick_processes() -> int:
    """Return how many processes answer sliders: one per core, at least two, that no window may block alone, at most four."""
    return max(2, min(4, cores()))


class Workers:
    """Processes that do one job each at a time; they start when they are needed.

    Owners of jobs are served in turn. A job goes to the process that has its programs, if that is free soon.

    Args:
        name: of the processes.
        size: how many there may be.
        niceness: of the processes, 0 … 19.
    """

    def __init__(self, name: str, size: int = 1, niceness: int = 0) -> None:
        self._waiting: OrderedDict[Hashable, deque[Job]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self._workers = [_Worker(f"{name} {number + 1}", niceness) for number in range(size)]
        self._threads = [
            threading.Thread(
                target=self._run, args=(worker,), name=f"mesascope lab {worker.name}", daemon=True
            )
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Job:
        """Put the job into the queue of its owner."""
        job.submitted = time.monotonic()
        with self._changed:
            jobs = self._waiting.setdefault(job.owner, deque())
            for one in [one for one in jobs if one.unwanted]:  # a window may ask without end
                jobs.remove(one)
                _discard(one)
            jobs.append(job)
            self._changed.notify_all()
        return job

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        with self._changed:
            return not self._waiting and not any(worker.job for worker in self._workers)

    def close(self) -> None:
        """End the processes, and their jobs."""
        with self._changed:
            self._closed = True
            for worker in self._workers:
                worker.closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=10)

    def _run(self, worker: _Worker) -> None:
        while self._take(worker):
            worker.do()
            with self._changed:
                worker.job = None
                self._changed.notify_all()
        worker.end()

    def _take(self, worker: _Worker) -> bool:
        """Wait for a job that this worker is to do; false once the pool is closed.

        Only `worker.job` holds it: what waits here for the next one must not keep the last one's window.
        """
        with self._changed:
            while not self._closed:
                worker.job = self._choose(worker)
                if worker.job is not None:
                    return True
                # a job that waits for another worker is checked again after `_MAX_WAIT`
                self._changed.wait(timeout=_MAX_WAIT / 4 if self._waiting else None)
        return False

    def _choose(self, worker: _Worker) -> Job | None:
        """The first job, owners in turn, for which no other worker is better prepared."""
        for owner, jobs in list(self._waiting.items()):
            while jobs and jobs[0].unwanted:
                _discard(jobs.popleft())
            if not jobs:
                del self._waiting[owner]
            elif self._may_do(worker, jobs[0]) and jobs[0].future.set_running_or_notify_cancel():
                job = jobs.popleft()
                self._waiting.move_to_end(owner)
                if not jobs:
                    del self._waiting[owner]
                return job
        return None

    def _may_do(self, worker: _Worker, job: Job) -> bool:
        better = [one for one in self._workers if one.rank(job) > worker.rank(job)]
        if any(one.job is None for one in better) or self._leaves_too_much(job.owner):
            return False
        return not better or time.monotonic() - job.submitted > _MAX_WAIT

    def _leaves_too_much(self, owner: Hashable) -> bool:
        """Whether the jobs that a window has dropped occupy all processes but one: its next job waits for them."""
        dropped = [one for one in self._workers if one.job and one.job.unwanted and one.job.owner == owner]
        return len(dropped) >= max(1, len(self._workers) - 1)


def _discard(job: Job) -> None:
    if not job.future.cancelled() and job.future.set_running_or_notify_cancel():
        job.future.set_exception(JobCancelledError())


class _Worker:
    """One process, replaced when it is lost or must be stopped."""

    def __init__(self, name: str, niceness: int) -> None:
        self.name, self._niceness = name, niceness
        self.job: Job | None = None  # that it does now
        self.closed = False
        self._process: Any = None
        self._shapes: set[tuple[str, ...]] = set()

    def rank(self, job: Job) -> int:
        """Return how well it is prepared for a job: 2 with its programs, 1 if it runs, 0 if it has to start."""
        return 2 if job.shape in self._shapes else int(self._process is not None)

    def do(self) -> None:
        """Do its job: the future has an outcome afterwards."""
        job = self.job
        assert job is not None
        try:
            self._do(job)
        except Exception as error:  # of the pool itself: nobody may wait forever
            self.end()
            if not job.future.done():
                job.future.set_exception(JobFailedError(f"the computation was lost ({error}); try again"))

    def _do(self, job: Job) -> None:
        if self._process is None or not self._process.is_alive():
            self._start()
        self._connection.send((job.name, job.arguments))
        asked = False
        while True:
            if job.overdue or self.closed:
                self.end()
                if not self.closed:
                    self._start()  # the next job need not wait for imports
                job.future.set_exception(JobCancelledError())
                return
            if job.unwanted and not asked:
                self._connection.send(STOP)
                asked = True
            if not self._connection.poll(_POLL):
                # what it has forked may keep the connection open
                if not self._process.is_alive() and not self._connection.poll():
                    raise JobFailedError(_LOST)
                continue
            try:
                kind, *answer = self._connection.recv()
            except (EOFError, OSError):
                raise JobFailedError(_LOST) from None
            if kind == "progress":
                job.progress(*answer)
                continue
            if kind == "done":
                self._shapes.add(job.shape)
            _settle(job, kind, answer)
            return

    def _start(self) -> None:
        self._shapes.clear()
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(other, tuple(map(str, default_plugins())), self._niceness),
            name=self.name,
            daemon=True,
        )
        self._process.start()
        other.close()

    def end(self) -> None:
        """End the process, and what it has forked."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._connection.close()
        if self.job is None:  # it ends by itself, as its connection is closed
            self._process.join(timeout=0.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # it may have no group yet
        self._process.join()
        self._process = None


def _settle(job: Job, kind: str, answer: list[Any]) -> None:
    if kind == "done":
        job.future.set_result(answer[0])
    elif kind == "cancelled":
        job.future.set_exception(JobCancelledError())
    else:
        what, path = answer
        job.future.set_exception(SpecError(what, *path) if path else JobFailedError(what))
