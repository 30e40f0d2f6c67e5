"""Jobs of the processes that compute: what is asked, its progress, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mesascope.studies import FlowSpec

Report = Callable[..., None]
"""Reports the progress of a job as a line, and with it a part of its result, if it has one; raises KeyboardInterrupt once the
job is asked to stop."""


class Program(NamedTuple):
    """The function that does the jobs of its name.

    Attributes:
        module: the module of this package that holds it; only processes that compute import it.
        shared: whether other windows get its results, too.
    """

    module: str
    shared: bool = True


PROGRAMS = {
    "laws": Program("_compute"),
    "facts": Program("_compute"),
    "flow": Program("_compute"),
    "behaviour": Program("_compute"),
    "identification": Program("_compute"),
    "descent": Program("_compute", shared=False),
    "claims": Program("_compute_claims"),
    "rerun": Program("_compute_claims", shared=False),
    "training": Program("_compute_models", shared=False),
    "learned": Program("_compute_models", shared=False),
    "given": Program("_compute_models", shared=False),
    "pools": Program("_compute_pools"),
    "saddles": Program("_compute_landscape"),
    "derivation": Program("_compute_landscape"),
    "properties": Program("_compute_counterexample"),
    "broken": Program("_compute_counterexample"),
}

_GRACE = 2.0  # seconds between the request to stop and the end of the process
_PATIENCE = 60.0  # the same for a job that was dropped: its programs, once compiled, serve the next one


class JobCancelledError(Exception):
    """The job was cancelled, or its result is no longer wanted."""


class JobFailedError(RuntimeError):
    """The job could not be done; the message is one line."""


@dataclass(eq=False)
class Job:
    """One piece of work.

    Attributes:
        name, arguments: what is computed; see `PROGRAMS`.
        progress: called with its progress, in another thread.
        owner: who asks; owners are served in turn.
        future: its result; `JobCancelledError`, `JobFailedError` or `SpecError` otherwise.
        submitted: when it began to wait, on the monotonic clock.
    """

    name: str
    arguments: dict[str, Any]
    progress: Callable[..., None] = lambda text, point=None: None
    owner: Hashable = None
    future: Future[Any] = field(default_factory=Future)
    submitted: float = 0.0
    _unwanted: bool = False
    _stop_by: float = float("inf")

    def drop(self) -> None:
        """Declare the result unwanted; a running job is asked to stop, and ended after a minute."""
        self._stop_within(_PATIENCE)

    def cancel(self) -> None:
        """Stop it within two seconds, whatever it is doing."""
        self._stop_within(_GRACE)

    def _stop_within(self, seconds: float) -> None:
        self._unwanted = True
        self._stop_by = min(self._stop_by, time.monotonic() + seconds)

    @property
    def unwanted(self) -> bool:
        """Whether it was dropped or cancelled, or nobody waits for its result."""
        return self._unwanted or self.future.cancelled()

    @property
    def overdue(self) -> bool:
        """Whether it should have stopped by now."""
        return time.monotonic() > self._stop_by

    @property
    def started(self) -> bool:
        """Whether a process has taken it."""
        return self.future.running()

    @property
    def shape(self) -> tuple[str, ...]:
        """What its compiled programs depend on: a process that has done a job of this shape has compiled them."""
        spec = self.arguments.get("spec")
        if not isinstance(spec, FlowSpec):
            return (self.name,)
        return (self.name, *map(str, (spec.dim, spec.law.kind, spec.mask, spec.solver, spec.rho)))
