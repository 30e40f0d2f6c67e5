"""Compute one run: read its plan, compute, and write its record."""

import errno
import os
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from mesascope.records import (
    InUseError,
    PlannedRun,
    Provenance,
    RecordError,
    RunFolders,
    RunRecord,
    provenance,
)
from mesascope.specs import Spec, SpecError, one_line, plugin_error, printable

from .._identify import IdentifySpec
from .._identify_models import FunctionSpec
from .._read import parse_spec
from ._attempts import abandon_attempt, attempts, begin_attempt, last_driver
from ._compute import SPECS, Computed, compute
from ._isolation import isolated
from ._limits import TimeLimitError, limited
from ._modules import importable, was_edited
from ._run_id import module_file, planned_run

End: TypeAlias = Literal["done", "failed", "cached", "locked"]
"""How a run ended: computed now (done, failed), computed before (cached), or being computed by another process (locked)."""

MACHINE, COMPUTATION, KILLED = "machine", "computation", "killed"
"""Why a run failed, `outcome.failure`: the machine (memory, disk, time limit, a lost worker); the computation, which would fail
again; or it killed the driver that computed it in its own process, again and again."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
_FORGET_EVERY = 10  # runs: counting the mapped memory regions takes a millisecond
_INSTALL = "install the same mesascope and libraries everywhere, and give the same command again"

compute_lock = threading.Lock()
"""Held while a run is computed in this process."""
_computed = 0


class OtherCodeError(RecordError):
    """The run was planned with other code, or with other files, than those that are here."""


class MachineError(RuntimeError):
    """A failure that may not happen again, such as a file that could not be read; the text holds the traceback."""


class StoreFullError(RuntimeError):
    """The disk of the store is full: no run can be recorded."""


def _never() -> bool:
    return False


class Request(NamedTuple):
    """How a driver wants its runs to be computed.

    Attributes:
        search: folders in which modules of functions are found.
        driver: id of the driver, which is written down with every attempt.
        in_driver: whether the runs are computed in the driver's own process.
        batch: how many flows are solved together, at most. Programs are compiled for powers of two, or for `batch` itself;
            where there are fewer flows, the last one is solved several times.
        time_limit: seconds after which a run is ended, and recorded as failed; None for no limit.
        stopped: whether Ctrl-C was pressed: exceptions that are raised afterwards say nothing about the run.
        plugins: those of the study. A plan in the store may come from others, and has no others executed.
    """

    search: tuple[str, ...] = ()
    driver: str = ""
    in_driver: bool = False
    batch: int = 1
    time_limit: float | None = None
    stopped: Callable[[], bool] = _never
    plugins: frozenset[str] = frozenset()


_DEFAULTS = Request()


def execute(root: str | os.PathLike[str], run: str, request: Request = _DEFAULTS) -> End:
    """Compute a planned run, unless it has ended before, and record how it ended.

    If the computation raises an exception, the run is recorded as failed, with the traceback. The run is locked while it is
    computed, this process computes no other, and what the run changes in this process is undone.

    Args:
        root: the folder of the store.
        run: its id.
        request: how to compute it.

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
        with machine_errors(folders, [run]):
            if is_final(folders.reusable(run)):
                return "cached"
            with compute_lock, folders.holding(run):
                if is_final(folders.reusable(run)):
                    return "cached"
                planned = folders.planned(run)
                with importable(request.search if planned.kind == "identify" else ()), isolated(run):
                    end = _compute(folders, planned, request)
                forget_programs_sometimes()
                return end
    except InUseError:
        return "locked"


@contextmanager
def machine_errors(folders: RunFolders, runs: Sequence[str]) -> Iterator[None]:
    """Turn errors of files of the store, which may not happen again, into errors of their own.

    Raises:
        MachineError, StoreFullError: such an error; MachineError also if one of the runs has been removed.
    """
    try:
        yield
    except (InUseError, OtherCodeError):
        raise
    except RecordError as error:
        if is_full(error) or _is_of_a_file(error) or not all(map(folders.is_planned, runs)):
            raise _machine_error(error) from error
        raise


def recorded_end(folders: RunFolders, run: str, driver: str) -> End:
    """How a run ended, by the files in its folder: done or failed if for this driver, cached if for another."""
    record, folder = folders.reusable(run), folders.folder(run)
    if record is not None and last_driver(folder) == driver and record.attempts == attempts(folder):
        return record.status
    return "cached" if is_final(record) else "locked"


def is_final(record: RunRecord | None) -> bool:
    """Whether a run need not be computed: it is done, or would fail again."""
    return record is not None and (record.status == "done" or record.outcome.get("failure") != MACHINE)


def record_failure(folders: RunFolders, run: str, failure: str, error: str, trace: str | None = None) -> None:
    """Record that a run has failed in the attempts before.

    Raises:
        InUseError: another process computes it now.
        RecordError: it cannot be written.
    """
    with folders.holding(run):
        watch = Stopwatch(attempts(folders.folder(run)))
        folders.finish(watch.record(folders.planned(run), {"failure": failure}, error, trace))


def forget_programs_sometimes() -> None:
    """After every few runs, forget compiled programs before they fill the memory."""
    from mesascope.core import forget_programs

    global _computed
    _computed += 1
    if _computed % _FORGET_EVERY == 0:
        forget_programs()


def _compute(folders: RunFolders, planned: PlannedRun, request: Request) -> End:
    spec = read_planned(planned, request.plugins)
    folder = folders.folder(planned.id)
    try:
        watch = Stopwatch(begin_attempt(folder, request.driver, request.in_driver))
    except RecordError as error:
        raise _machine_error(error) from None
    try:

        def record_limit(trace: str) -> None:
            error = error_line(TimeLimitError(request.time_limit or 0))
            folders.finish(watch.record(planned, {"failure": MACHINE}, error, trace))

        found, trace = _outcome(spec, folder, request, record_limit)
        try:
            record = watch.record(planned, found.outcome, found.error, trace)
            return folders.finish(record, found.data).status
        except RecordError as error:
            raise _machine_error(error) from None
    except BaseException:  # the process lives: this run has not killed it
        with suppress(RecordError):
            abandon_attempt(folder)
        raise


def _outcome(
    spec: Spec, folder: Path, request: Request, record_limit: Callable[[str], None]
) -> tuple[Computed, str | None]:
    """The result of the computation; if it failed, with the traceback."""
    try:
        with limited(request.time_limit, request.in_driver, record_limit):
            found = compute(spec, folder)
    except (Exception, SystemExit) as error:
        if request.stopped():
            raise KeyboardInterrupt from error
        if _is_of_a_file(error):
            raise _machine_error(error) from None
        passing = _is_memory(error) or isinstance(error, TimeLimitError)
        failure = MACHINE if passing else COMPUTATION
        return Computed({"failure": failure}, None, error_line(error)), traceback.format_exc()
    return with_failure(found), None


def with_failure(found: Computed) -> Computed:
    """The result; if it is an error, marked as one of the computation."""
    if found.error is None:
        return found
    return found._replace(outcome={**found.outcome, "failure": COMPUTATION})


def _machine_error(error: BaseException) -> MachineError | StoreFullError:
    """The error to raise for a file that could not be read or written; call it while `error` is handled."""
    if isinstance(error, RecordError) and is_full(error):
        return StoreFullError(one_line(str(error)))
    return MachineError(f"{type(error).__name__}: {one_line(str(error))}\n{traceback.format_exc()}")


def is_full(error: RecordError) -> bool:
    """Whether it was raised because the disk is full."""
    cause = error.__cause__
    # NetCDF reports a full disk as an HDF error, without its number
    return (isinstance(cause, OSError) and cause.errno in _FULL) or "HDF error" in str(cause)


class Stopwatch:
    """The times of an attempt: the time of day for people, a monotonic clock for the duration.

    Args:
        attempts: how many there are, with this one.
        batch: for how many runs the program is compiled.
        together: how many runs it computes, which share the time.
    """

    def __init__(self, attempts: int, batch: int = 1, together: int = 1) -> None:
        self._attempts, self._batch, self._together = max(attempts, 1), batch, together
        self._begun = time.monotonic()
        self._started = _now()

    def record(
        self, planned: PlannedRun, outcome: dict[str, Any], error: str | None, trace: str | None
    ) -> RunRecord:
        """The record of the attempt, which ends now."""
        now = _now()
        return RunRecord(
            **planned.model_dump(),
            status="done" if error is None else "failed",
            outcome=outcome,
            error=None if error is None else one_line(error),
            traceback=trace,
            attempts=self._attempts,
            started=self._started,
            ended=now,
            seconds=(time.monotonic() - self._begun) / self._together,
            batch=self._batch,
            provenance=_provenance().model_copy(update={"created": now}),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@lru_cache(maxsize=1)
def _provenance() -> Provenance:
    """It is the same for all runs of a process."""
    return provenance()


def read_planned(planned: PlannedRun, plugins: Collection[str]) -> Spec:
    """The specification of a planned run, whose plugins are among those of the study.

    Raises:
        OtherCodeError: it means something else here.
    """
    named = planned.spec.get("plugins")
    others = set(map(str, named)) - set(plugins) if isinstance(named, list) else set()
    if others:
        raise OtherCodeError(
            f"run {planned.id} was planned with plugins that the study does not name: {printable(', '.join(sorted(others)))}; "
            "remove its folder, or choose another store"
        )
    try:
        spec = parse_spec(planned.spec, SPECS[planned.kind])
        again = planned_run(planned.kind, spec)
    except SpecError as error:
        raise OtherCodeError(f"run {planned.id} cannot be read here ({error}); {_INSTALL}") from error
    if again.id != planned.id:
        what = "code" if again.code.split("+")[:2] != planned.code.split("+")[:2] else "files"
        raise OtherCodeError(f"run {planned.id} was planned with other {what} than there is here; {_INSTALL}")
    if isinstance(spec, IdentifySpec) and isinstance(spec.model, FunctionSpec):
        file = module_file(spec.model.name)
        if was_edited(file):
            raise OtherCodeError(f"{file} was edited after this process imported it; start the process again")
    return spec


def error_line(error: BaseException) -> str:
    """An error in one line; of a plugin, with its kind, file and line."""
    if (told := plugin_error(error)) is not None:
        return told
    text = one_line(str(error))
    return f"{type(error).__name__}{': ' * bool(text)}{text}"


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _is_of_a_file(error: BaseException) -> bool:
    """Whether an error, or what caused it, is one of the operating system."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            return True
        cause = cause.__cause__
    return False
