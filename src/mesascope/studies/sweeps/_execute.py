"""One run, from its folder into its folder."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from mesascope.records import (
    InUseError,
    PlannedRun,
    Provenance,
    RecordError,
    RunFolders,
    RunRecord,
    provenance,
)

from .._base import Spec
from .._errors import SpecError, one_line
from .._read import parse_spec
from ._attempts import begin_attempt
from ._compute import Computed, compute
from ._kinds import SPECS
from ._run_id import planned_run

Ended: TypeAlias = Literal["done", "failed", "kept", "busy"]
"""How asking for a run ended: computed now, kept from before, or somebody else computes it."""

MACHINE, COMPUTATION = "machine", "computation"
"""Why a run failed, `outcome.failure`: for want of memory, disk or a worker, or by itself, which it would do again."""


class OtherCodeError(RecordError):
    """The run was planned with other code, or with other files, than those that are here."""


class MachineError(RuntimeError):
    """Something failed that may go well the next time: a file, the disk; text of traceback and all."""


def execute(
    root: str | os.PathLike[str],
    run: str,
    *,
    search: Sequence[str] = (),
    driver: str = "",
    stopped: Callable[[], bool] = lambda: False,
) -> Ended:
    """Compute a planned run, unless it has ended before, and record how it ended.

    Whatever the computation raises is recorded, with its traceback: the run has failed. While it is computed nobody else
    gets it.

    Args:
        root: the folder of the store.
        run: its id.
        search: folders in which modules of functions are found.
        driver: for whom; it is written down with the attempt.
        stopped: whether somebody has pressed Ctrl-C: whatever is raised then says nothing about the run.

    Raises:
        KeyboardInterrupt: nothing is recorded.
        MachineError: a file could not be read or written; nothing is recorded.
        OtherCodeError: the code or the files are not those that it was planned with.
        RecordError: it is not planned.
        ValueError: 64-bit mode is off.
    """
    from mesascope.core import require_x64

    require_x64("a sweep")
    folders = RunFolders(root)
    if ended(folders.run(run)):
        return "kept"
    try:
        with folders.holding(run):
            if ended(folders.run(run)):
                return "kept"
            with importable(search):
                return _compute(folders, folders.planned(run), driver, stopped)
    except InUseError:
        return "busy"


def ended(record: RunRecord | None) -> bool:
    """Whether a run need not be computed: it is done, or would fail again."""
    return record is not None and (record.state == "done" or record.outcome.get("failure") != MACHINE)


def _compute(folders: RunFolders, planned: PlannedRun, driver: str, stopped: Callable[[], bool]) -> Ended:
    spec = _read(planned)
    folder = folders.folder(planned.id)
    watch = Stopwatch(begin_attempt(folder, driver))
    trace = None
    try:
        found = compute(spec, folder)
    except Exception as error:
        if stopped():
            raise KeyboardInterrupt from error
        if _is_of_a_file(error):
            raise MachineError(
                f"{type(error).__name__}: {one_line(str(error))}\n{traceback.format_exc()}"
            ) from None
        short = _is_memory(error)
        found = Computed({"failure": MACHINE if short else COMPUTATION}, None, _told(error))
        trace = traceback.format_exc()
    else:
        if found.error is not None:
            found = found._replace(outcome={**found.outcome, "failure": COMPUTATION})
    try:
        record = watch.record(planned, found.outcome, found.error, trace)
        return folders.finish(record, found.data).state
    except RecordError as error:
        raise MachineError(f"RecordError: {error}\n{traceback.format_exc()}") from None


class Stopwatch:
    """The times of an attempt: of day for people, of a clock that never goes back for its duration."""

    def __init__(self, attempts: int) -> None:
        self._attempts, self._begun = max(attempts, 1), time.monotonic()
        self._started = _now()

    def record(
        self, planned: PlannedRun, outcome: dict[str, Any], error: str | None, trace: str | None
    ) -> RunRecord:
        """The record of the attempt, which ends now."""
        now = _now()
        return RunRecord(
            **planned.model_dump(),
            state="done" if error is None else "failed",
            outcome=outcome,
            error=None if error is None else one_line(error),
            traceback=trace,
            attempts=self._attempts,
            started=self._started,
            ended=now,
            seconds=time.monotonic() - self._begun,
            provenance=_circumstances().model_copy(update={"created": now}),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@lru_cache(maxsize=1)
def _circumstances() -> Provenance:
    """They are the same for all runs of a process."""
    return provenance()


def _read(planned: PlannedRun) -> Spec:
    try:
        spec = parse_spec(planned.spec, SPECS[planned.kind])
        again = planned_run(planned.kind, spec)
    except SpecError as error:
        raise OtherCodeError(f"run {planned.id} cannot be read here ({error}); {_MEND}") from error
    if again.id != planned.id:
        what = "code" if again.code.split("+")[:2] != planned.code.split("+")[:2] else "files"
        raise OtherCodeError(f"run {planned.id} was planned with other {what} than there is here; {_MEND}")
    return spec


_MEND = "install the same mesascope and libraries everywhere, and give the same command again"


def _told(error: BaseException) -> str:
    said = one_line(str(error))
    return f"{type(error).__name__}{': ' * bool(said)}{said}"


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _is_of_a_file(error: BaseException) -> bool:
    """Whether an error, or what caused it, is one of the operating system."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError):
            return True
        seen = seen.__cause__
    return False


@contextmanager
def importable(search: Sequence[str]) -> Iterator[None]:
    """Let modules be imported from these folders."""
    before = list(sys.path)
    sys.path[:0] = [folder for folder in search if folder not in before]
    try:
        yield
    finally:
        sys.path[:] = before
