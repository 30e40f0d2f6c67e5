"""Long work off the event loop: a few processes that take jobs, fair to all who ask; each can be stopped, and is replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Any

from mesascope.studies import SpecError

from ._jobs import Job, JobCancelledError, JobFailedError
from ._worker import cache_folder, serve

_LOOK = 0.01  # seconds between two looks at the wishes of those who wait
_PATIENCE = 0.4  # seconds that a job waits for the process that has its programs, before another compiles or loads them


def quick_processes() -> int:
    """How many processes answer sliders: one for each core, at least two, so that no window stalls all others, at most four."""
    return max(2, min(4, len(os.sched_getaffinity(0))))


class Pool:
    """Processes that do one job each at a time; they start when they are needed.

    Owners of jobs are served in turn. A job goes to the process that has its programs, if that is free soon.

    Args:
        name: of the processes.
        size: how many there may be.
        niceness: how far they stand back behind other processes, 0 … 19.
    """

    def __init__(self, name: str, size: int = 1, niceness: int = 0) -> None:
        self._waiting: OrderedDict[Hashable, deque[Job]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self._workers = [_Worker(f"{name} {number + 1}", niceness) for number in range(size)]
        self._keepers = [
            threading.Thread(
                target=self._keep, args=(worker,), name=f"mesascope lab {worker.name}", daemon=True
            )
            for worker in self._workers
        ]
        for keeper in self._keepers:
            keeper.start()

    def submit(self, job: Job) -> Job:
        """Let the job wait for its turn."""
        job.submitted = time.monotonic()
        with self._changed:
            self._waiting.setdefault(job.owner, deque()).append(job)
            self._changed.notify_all()
        return job

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        with self._changed:
            return not self._waiting and not any(worker.busy for worker in self._workers)

    def close(self) -> None:
        """End the processes, and with them the jobs that they are doing."""
        with self._changed:
            self._closed = True
            for worker in self._workers:
                worker.closed = True
            self._changed.notify_all()
        for keeper in self._keepers:
            keeper.join(timeout=10)

    def _keep(self, worker: _Worker) -> None:
        while (job := self._next(worker)) is not None:
            worker.do(job)
            with self._changed:
                worker.busy = False
                self._changed.notify_all()
        worker.end()

    def _next(self, worker: _Worker) -> Job | None:
        """Wait for a job that this worker is to do; None once the pool is closed."""
        with self._changed:
            while not self._closed:
                job = self._choose(worker)
                if job is not None:
                    worker.busy = True
                    return job
                # a job that waits for another worker is looked at again when its patience is over
                self._changed.wait(timeout=_PATIENCE / 4 if self._waiting else None)
        return None

    def _choose(self, worker: _Worker) -> Job | None:
        """The first job, owners in turn, that no other worker should rather do."""
        for owner, jobs in list(self._waiting.items()):
            while jobs and jobs[0].unwanted:
                _settle(jobs.popleft())
            if not jobs:
                del self._waiting[owner]
            elif self._suits(worker, jobs[0]) and jobs[0].future.set_running_or_notify_cancel():
                job = jobs.popleft()
                self._waiting.move_to_end(owner)
                if not jobs:
                    del self._waiting[owner]
                return job
        return None

    def _suits(self, worker: _Worker, job: Job) -> bool:
        better = [one for one in self._workers if one.rank(job) > worker.rank(job)]
        if any(not one.busy for one in better):
            return False
        return not better or time.monotonic() - job.submitted > _PATIENCE


def _settle(job: Job) -> None:
    if not job.future.cancelled() and job.future.set_running_or_notify_cancel():
        job.future.set_exception(JobCancelledError())


class _Worker:
    """One process, replaced when it is lost or must be stopped."""

    def __init__(self, name: str, niceness: int) -> None:
        self.name, self._niceness = name, niceness
        self.busy = self.closed = False
        self._process: Any = None
        self._shapes: set[tuple[str, ...]] = set()

    def rank(self, job: Job) -> int:
        """How well it is prepared for a job: 2 with its programs, 1 if it runs, 0 if it has to start."""
        return 2 if job.shape in self._shapes else int(self._process is not None)

    def do(self, job: Job) -> None:
        """Do a job: its future has an outcome afterwards."""
        try:
            self._do(job)
        except Exception as error:  # of the machinery: who waits must not wait for ever
            self.end()
            if not job.future.done():
                job.future.set_exception(JobFailedError(f"the computation was lost ({error}); try again"))

    def _do(self, job: Job) -> None:
        if self._process is None or not self._process.is_alive():
            self._start()
        self._stop.clear()
        self._connection.send((job.name, job.arguments))
        while True:
            if job.overdue or self.closed:
                self.end()
                if not self.closed:
                    self._start()  # so that the next job does not wait for its libraries, too
                job.future.set_exception(JobCancelledError())
                return
            if job.unwanted:
                self._stop.set()
            if not self._connection.poll(_LOOK):
                continue
            try:
                kind, *told = self._connection.recv()
            except EOFError:
                raise JobFailedError("its process ended, perhaps for want of memory") from None
            if kind == "tell":
                job.tell(*told)
                continue
            if kind == "done":
                self._shapes.add(job.shape)
            _answer(job, kind, told)
            return

    def _start(self) -> None:
        self._shapes.clear()
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._stop = context.Event()
        self._process = context.Process(
            target=serve,
            args=(other, self._stop, cache_folder(), self._niceness),
            name=self.name,
            daemon=True,
        )
        self._process.start()
        other.close()

    def end(self) -> None:
        """End the process."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._connection.close()
        if not self.busy:  # it ends by itself, as its connection is closed
            self._process.join(timeout=0.2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process = None


def _answer(job: Job, kind: str, told: list[Any]) -> None:
    if kind == "done":
        job.future.set_result(told[0])
    elif kind == "cancelled":
        job.future.set_exception(JobCancelledError())
    else:
        what, path = told
        job.future.set_exception(SpecError(what, path) if path else JobFailedError(what))
