"""What is asked of the processes that compute: a job, its wishes, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

Tell = Callable[[str], None]
"""Says how far a job is; raises KeyboardInterrupt once it is to stop."""

_GRACE = 2.0  # seconds between the wish to stop and the end of the process


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
        owner: who asks: owners are served in turn.
        future: its result; `JobCancelledError`, `JobFailedError` or `SpecError` otherwise.
        submitted: when it began to wait, on the monotonic clock.
    """

    name: str
    arguments: dict[str, Any]
    tell: Callable[[str], None] = lambda text: None
    owner: Hashable = None
    future: Future[Any] = field(default_factory=Future)
    submitted: float = 0.0
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
        """Whether it was dropped or cancelled, or nobody waits for its result."""
        return self._unwanted or self.future.cancelled()

    @property
    def overdue(self) -> bool:
        """Whether it was to have stopped by now."""
        return time.monotonic() > self._stop_by

    @property
    def started(self) -> bool:
        """Whether a process has taken it."""
        return self.future.running()

    @property
    def shape(self) -> tuple[str, ...]:
        """What its programs are compiled for, as far as its arguments tell: who has done one of a shape has its programs."""
        setting = self.arguments.get("setting", {})
        law = setting.get("law")
        kind = law.get("kind") if isinstance(law, dict) else law
        parts = (setting.get("dim"), kind, setting.get("mask"), setting.get("solver"), setting.get("rho"))
        return (self.name, *map(str, parts))
