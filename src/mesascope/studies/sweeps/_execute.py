"""One run, from its folder into its folder."""

import errno
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
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
from mesascope.specs import Spec, SpecError, one_line

from .._identify import IdentifySpec
from .._identify_models import FunctionSpec
from .._read import parse_spec
from ._attempts import attempts, begin_attempt, last_driver, leave_attempt
from ._compute import Computed, compute
from ._isolation import isolated
from ._kinds import SPECS
from ._modules import importable, was_edited
from ._run_id import module_file, planned_run

Ended: TypeAlias = Literal["done", "failed", "cached", "locked"]
"""What became of a run: computed now (done, failed), cached from before, or locked by somebody who computes it."""

MACHINE, COMPUTATION, KILLED = "machine", "computation", "killed"
"""Why a run failed, `outcome.failure`: for want of memory, disk or a worker; by itself, which it would do again; or because
it killed the driver that computed it in its own process, again and again."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
_FORGET_EVERY = 10  # runs: reading how many mappings there are takes a millisecond


class OtherCodeError(RecordError):
    """The run was planned with other code, or with other files, than those that are here."""


class MachineError(RuntimeError):
    """Something failed that may go well the next time, such as reading a file; text of traceback and all."""


class StoreFullError(RuntimeError):
    """The store takes no more, of whatever run."""


one_at_a_time = threading.Lock()
"""Held while a run is computed in this process."""
_computed = 0


def execute(
    root: str | os.PathLike[str],
    run: str,
    *,
    search: Sequence[str] = (),
    driver: str = "",
    alone: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Ended:
    """Compute a planned run, unless it has ended before, and record how it ended.

    Whatever the computation raises is recorded, with its traceback: the run has failed. While it is computed nobody else
    gets it, and this process computes no other; what it changes in this process is undone.

    Args:
        root: the folder of the store.
        run: its id.
        search: folders in which modules of functions are found.
        driver: for whom; it is written down with the attempt.
        alone: whether this process is the driver itself.
        stopped: whether somebody has pressed Ctrl-C: whatever is raised then says nothing about the run.

    Raises:
        KeyboardInterrupt: nothing is recorded.
        MachineError: a file could not be read or written; nothing is recorded.
        StoreFullError: nothing can be written into the store.
        OtherCodeError: the code or the files are not those that it was planned with.
        RecordError: it is not planned.
        ValueError: 64-bit mode is off.
    """
    from mesascope.core import require_x64

    require_x64("a sweep")
    folders = RunFolders(root)
    try:
        with of_the_machine(folders, [run]):
            if ended(folders.run(run)):
                return "cached"
            with one_at_a_time, folders.holding(run):
                if ended(folders.run(run)):
                    return "cached"
                planned = folders.planned(run)
                with importable(search if planned.kind == "identify" else ()), isolated(run):
                    found = _compute(folders, planned, driver, alone, stopped)
                forget_programs_now_and_then()
                return found
    except InUseError:
        return "locked"


@contextmanager
def of_the_machine(folders: RunFolders, runs: Sequence[str]) -> Iterator[None]:
    """Tell errors of files of the store, which may go well the next time, from all others.

    Raises:
        MachineError, StoreFullError: in the place of such an error; also where one of the runs was removed meanwhile.
    """
    try:
        yield
    except (InUseError, OtherCodeError):
        raise
    except RecordError as error:
        if is_full(error) or _is_of_a_file(error) or not all(map(folders.is_planned, runs)):
            raise _of_the_machine(error) from error
        raise


def how_it_ended(folders: RunFolders, run: str, driver: str) -> Ended:
    """What became of a run that was given to somebody, by what lies in its folder: for this driver, or another."""
    record, folder = folders.run(run), folders.folder(run)
    if record is not None and last_driver(folder) == driver and record.attempts == attempts(folder):
        return record.state
    return "cached" if ended(record) else "locked"


def ended(record: RunRecord | None) -> bool:
    """Whether a run need not be computed: it is done, or would fail again."""
    return record is not None and (record.state == "done" or record.outcome.get("failure") != MACHINE)


def forget_programs_now_and_then() -> None:
    """Forget compiled programs, after a number of runs, before they fill the memory."""
    from mesascope.core import forget_programs

    global _computed
    _computed += 1
    if _computed % _FORGET_EVERY == 0:
        forget_programs()


def _compute(
    folders: RunFolders, planned: PlannedRun, driver: str, alone: bool, stopped: Callable[[], bool]
) -> Ended:
    spec = read_planned(planned)
    folder = folders.folder(planned.id)
    try:
        watch = Stopwatch(begin_attempt(folder, driver, alone))
    except RecordError as error:
        raise _of_the_machine(error) from None
    try:
        found, trace = _outcome(spec, folder, stopped)
        try:
            record = watch.record(planned, found.outcome, found.error, trace)
            return folders.finish(record, found.data).state
        except RecordError as error:
            raise _of_the_machine(error) from None
    except BaseException:  # the process lives: this run has not killed it
        with suppress(RecordError):
            leave_attempt(folder)
        raise


def _outcome(spec: Spec, folder: Path, stopped: Callable[[], bool]) -> tuple[Computed, str | None]:
    """What the computation gives, or how it failed, with the traceback."""
    try:
        found = compute(spec, folder)
    except (Exception, SystemExit) as error:
        if stopped():
            raise KeyboardInterrupt from error
        if _is_of_a_file(error):
            raise _of_the_machine(error) from None
        short = _is_memory(error)
        failed = Computed({"failure": MACHINE if short else COMPUTATION}, None, told(error))
        return failed, traceback.format_exc()
    return blamed(found), None


def blamed(found: Computed) -> Computed:
    """What was computed; where it has failed, it has done so by itself."""
    if found.error is None:
        return found
    return found._replace(outcome={**found.outcome, "failure": COMPUTATION})


def _of_the_machine(error: BaseException) -> MachineError | StoreFullError:
    """What an error says of a file that could not be read or written; ask while it is handled."""
    if isinstance(error, RecordError) and is_full(error):
        return StoreFullError(one_line(str(error)))
    return MachineError(f"{type(error).__name__}: {one_line(str(error))}\n{traceback.format_exc()}")


def is_full(error: RecordError) -> bool:
    """Whether it was raised because the disk takes no more."""
    cause = error.__cause__
    # of a full disk NetCDF says no more than this
    return (isinstance(cause, OSError) and cause.errno in _FULL) or "HDF error" in str(cause)


class Stopwatch:
    """The times of an attempt: of day for people, of a clock that never goes back for its duration.

    Args:
        attempts: how many there are, with this one.
        batch: how many runs the program takes at once.
        mates: how many it has taken, which share the time.
    """

    def __init__(self, attempts: int, batch: int = 1, mates: int = 1) -> None:
        self._attempts, self._batch, self._mates = max(attempts, 1), batch, mates
        self._begun = time.monotonic()
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
            seconds=(time.monotonic() - self._begun) / self._mates,
            batch=self._batch,
            provenance=_circumstances().model_copy(update={"created": now}),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@lru_cache(maxsize=1)
def _circumstances() -> Provenance:
    """They are the same for all runs of a process."""
    return provenance()


def read_planned(planned: PlannedRun) -> Spec:
    """The specification of a planned run.

    Raises:
        OtherCodeError: it means something else here.
    """
    try:
        spec = parse_spec(planned.spec, SPECS[planned.kind])
        again = planned_run(planned.kind, spec)
    except SpecError as error:
        raise OtherCodeError(f"run {planned.id} cannot be read here ({error}); {_MEND}") from error
    if again.id != planned.id:
        what = "code" if again.code.split("+")[:2] != planned.code.split("+")[:2] else "files"
        raise OtherCodeError(f"run {planned.id} was planned with other {what} than there is here; {_MEND}")
    if isinstance(spec, IdentifySpec) and isinstance(spec.model, FunctionSpec):
        file = module_file(spec.model.name)
        if was_edited(file):
            raise OtherCodeError(
                f"{file} was edited after this process had imported it; start the process anew"
            )
    return spec


_MEND = "install the same mesascope and libraries everywhere, and give the same command again"


def told(error: BaseException) -> str:
    """An error in one line."""
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
