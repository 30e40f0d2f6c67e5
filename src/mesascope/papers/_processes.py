"""Checking claims in several processes at once."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from mesascope.core import enable_x64, end_with_parent, keep_programs, one_thread
from mesascope.records import RecordError, RunDirectory

from ._check import Job, check, failed
from ._earlier import shipped_run
from ._registry import claims

Tell = Callable[[Any, str, Any], None]
"""Called with "start", "progress" or "done", the id of a claim, and nothing, a line or its record."""


def sharing(jobs: Sequence[Job]) -> list[list[Job]]:
    """Groups of claims whose checks stand in one module, and share what is trained and compiled, as they begin.

    The longest group begins first, so that the processes end at about the same time; the shortest second, and in each group the
    shortest claim first, so that a verdict appears soon.
    """
    groups: dict[str, list[Job]] = {}
    for job in sorted(jobs, key=_seconds):
        groups.setdefault(_module(job), []).append(job)
    found = sorted(groups.values(), key=lambda group: -sum(map(_seconds, group)))
    if len(found) > 2:
        found.insert(1, found.pop())
    return found


def _module(job: Job) -> str:
    check: Any = job.claim.check
    while hasattr(check, "func"):  # a partial
        check = check.func
    return str(check.__module__)


def _seconds(job: Job) -> float:
    """How long the check took for the record that comes with the package; of the small preset, for the order only."""
    try:
        return shipped_run("small").read_claim(job.claim.id).seconds
    except RecordError:
        return 0.0


def check_in_processes(groups: Sequence[list[Job]], count: int, run: RunDirectory, tell: Tell) -> None:
    """Check groups of claims in processes, each group in one of them.

    Args:
        groups: in the order in which they begin.
        count: the number of processes.
        run: where records go.
        tell: called in this thread.

    Raises:
        RecordError: a record cannot be written.
    """
    waiting = list(groups)
    workers = [_Worker(run, waiting.pop(0)) for _ in range(min(count, len(waiting)))]
    try:
        while workers:
            for connection in wait([worker.connection for worker in workers]):
                worker = next(one for one in workers if one.connection is connection)
                if worker.hear(tell):
                    if not worker.left and waiting:
                        worker.begin(waiting.pop(0))
                    elif not worker.left:
                        workers.remove(worker)
                        worker.end()
                    continue
                workers.remove(worker)  # the process was killed
                worker.end()
                if why := worker.lost():
                    job = worker.left.pop(0)
                    tell("done", job.claim.id, failed(job, run, f"{why}; out of memory?"))
                if following := worker.left or (waiting.pop(0) if waiting else None):
                    workers.append(_Worker(run, following))
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that checks groups of claims, one after the other.

    Attributes:
        left: claims of the present group that are not done.
        begun: how many claims have begun in it, of all groups.
    """

    def __init__(self, run: RunDirectory, group: list[Job]) -> None:
        context = get_context("spawn")
        self.left: list[Job] = []
        self.begun = 0
        self._running = False
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, run.path), daemon=True)
        self._process.start()
        other.close()
        self.begin(group)

    def begin(self, group: list[Job]) -> None:
        """Let it check a group; it has finished those before."""
        self.left = list(group)
        with suppress(OSError):  # it was killed; hearing from it says so
            self.connection.send([(job.claim.id, job.preset, job.mark) for job in group])

    def hear(self, tell: Tell) -> bool:
        """Pass on a message; return False if there will be no more."""
        try:
            word, id, content = self.connection.recv()
        except (EOFError, OSError):
            return False
        if word == "warning":
            warnings.warn(content, stacklevel=2)
        elif word == "error":
            raise content
        else:
            if word == "start":
                self.begun += 1
                self._running = True
            if word == "done":  # a progress that comes after it is of a thread that was late
                self._running = False
                self.left = [job for job in self.left if job.claim.id != id]
            tell(word, id, content)
        return True

    def lost(self) -> str:
        """After it was killed: why the next claim has no result; empty if it can begin in another process."""
        if self._running:
            return "the process that checked it was killed"
        # A process that has begun none is not followed by another for the same claim: all might be killed.
        return "" if self.begun else "it was not checked: its process was killed before it began"

    def end(self) -> None:
        """End the process, also in the middle of a claim: its files are whole or absent."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _serve(parent: Connection, folder: Any) -> None:
    """Check the claims of the groups that come, one after the other, and send what happens."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # a terminal sends it to every process; the parent ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(lambda: os._exit(1))
    os.environ.update(one_thread())
    keep_programs()
    enable_x64()
    lock, run = threading.Lock(), RunDirectory(folder)

    def send(word: str, id: str, content: Any = None) -> None:
        with lock:  # trainings report from threads of their own
            parent.send((word, id, content))

    def show(message: Warning | str, *others: Any) -> None:
        send("warning", "", str(message))

    warnings.showwarning = show  # type: ignore[assignment]  # it ignores where the warning comes from
    with suppress(ConnectionError, EOFError):  # the parent wants no more, or was killed
        while True:
            for id, preset, mark in parent.recv():
                send("start", id)
                try:
                    record = check(Job(claims(id)[0], preset, mark, None), run, partial(send, "progress", id))
                except Exception as error:
                    send("error", id, error if isinstance(error, RecordError) else RuntimeError(str(error)))
                    return
                send("done", id, record)
