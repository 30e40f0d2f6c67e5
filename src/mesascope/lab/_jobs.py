"""Long work off the event loop: jobs for a process of their own, with progress, cancelling, and latest wins."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from mesascope.studies import SpecError

from ._worker import cache_folder, serve

_GRACE = 2.0  # seconds between the wish to stop and the end of the process
_LOOK = 0.02  # seconds between two looks at the wishes of those who wait


class JobCancelledError(Exception):
    """Who asked for the job no longer wants it."""


class JobFailedError(RuntimeError):
    """The job could not be done; the message is one line."""


@dataclass(eq=False)
class Job:
    """One piece of work.

    Attributes:
        name, arguments: what is computed; see `_compute.JOBS`.
        tell: hears how far it is, in another thread.
        future: its result; `JobCancelledError`, `JobFailedError` or `SpecError` otherwise.
    """

    name: str
    arguments: dict[str, Any]
    tell: Callable[[str], None] = lambda text: None
    future: Future[Any] = field(default_factory=Future)
    _unwanted: bool = False
    _stop_by: float = float("inf")

    def drop(self) -> None:
        """The result is not wanted any more; what runs is asked to stop, and may take its time."""
        self._unwanted = True

    def cancel(self) -> None:
        """Stop it soon, whatever it is doing."""
        self.drop()
        self._stop_by = time.monotonic() + _GRACE

    @property
    def unwanted(self) -> bool:
        """Whether it was dropped or cancelled."""
        return self._unwanted

    @property
    def overdue(self) -> bool:
        """Whether it was to have stopped by now."""
        return time.monotonic() > self._stop_by


class Worker:
    """A process that does one job after the other, and is replaced when it is lost or must be stopped."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._closed = False
        self._process: Any = None
        self._name = name
        self._keeper = threading.Thread(target=self._keep, name=f"mesascope lab {name}", daemon=True)
        self._keeper.start()

    def submit(self, job: Job) -> Job:
        """Let the job wait for its turn."""
        self._jobs.put(job)
        return job

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        return self._jobs.unfinished_tasks == 0

    def close(self) -> None:
        """End the process, and with it the job that it is doing."""
        self._closed = True
        self._jobs.put(None)
        self._keeper.join(timeout=10)

    def _keep(self) -> None:
        while (job := self._jobs.get()) is not None and not self._closed:
            self._settle(job)
            self._jobs.task_done()
        self._end()

    def _settle(self, job: Job) -> None:
        if not job.future.set_running_or_notify_cancel():  # whoever waited for it was stopped
            return
        if job.unwanted:
            job.future.set_exception(JobCancelledError())
            return
        try:
            self._do(job)
        except Exception as error:  # of the machinery: who waits must not wait for ever
            self._end()
            if not job.future.done():
                job.future.set_exception(JobFailedError(f"the computation was lost ({error}); try again"))

    def _do(self, job: Job) -> None:
        if self._process is None or not self._process.is_alive():
            self._start()
        self._stop.clear()
        self._connection.send((job.name, job.arguments))
        while True:
            if job.overdue or self._closed:
                self._end()
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
            _answer(job, kind, told)
            return

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._stop = context.Event()
        self._process = context.Process(
            target=serve, args=(other, self._stop, cache_folder()), name=self._name, daemon=True
        )
        self._process.start()
        other.close()

    def _end(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._connection.close()
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
