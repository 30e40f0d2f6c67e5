"""All runs of a study, wherever there are workers."""

import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from mesascope.core import Progress, finite_positive, integer_at_least
from mesascope.records import RecordError, RunFolders
from mesascope.specs import Spec, show

from .._flow import program_of
from .._read import read_spec
from ._clusters import client_of
from ._drive import Drive
from ._execute import Request, is_full
from ._jobs import QUEUES
from ._prepare import check, open_or_make, prepare, search_folders, without_killers
from ._runners import RESUMES, InProcess, OnDask, Runner, SweepError
from ._status import Failure, announced, grouped
from ._study import StudySpec
from ._together import batches

if TYPE_CHECKING:
    from mesascope.records import Store

IN_PROCESS, LOCAL = "in-process", "local"
_MAX_BATCH = 512  # flows: each is locked by an open file, and many systems grant a process 1024


class SweepResult(BaseModel):
    """The result of a sweep.

    Attributes:
        study: its name.
        total: its runs; points with the same meaning are one run.
        done: runs that were computed now.
        failed: runs that failed, now or before.
        reused: runs that were done before, or by another sweep in the meantime.
        failures: the reasons of failures, equal ones together.
        unbatched: the reasons why runs of a batch were computed one by one, equal ones together.
        ids: of all runs, in the order of the points.
        not_indexed: why some runs are not in the index until the store is opened again; None if all are.
    """

    model_config = ConfigDict(frozen=True)

    study: str
    total: int
    done: int
    failed: int
    reused: int
    failures: tuple[Failure, ...]
    unbatched: tuple[Failure, ...]
    ids: tuple[str, ...]
    not_indexed: str | None = None

    @property
    def succeeded(self) -> bool:
        """Whether every run is done."""
        return not self.failed


def sweep(
    study: StudySpec | str | os.PathLike[str],
    store: "Store | str | os.PathLike[str]",
    scheduler: str = IN_PROCESS,
    workers: int | None = None,
    retries: int = 2,
    progress: Callable[[Progress], None] | None = None,
    *,
    index: str | None = None,
    batch: int = 1,
    time_limit: float | None = None,
) -> SweepResult:
    """Compute the runs of a study that are not in the store yet.

    A run that raises an exception, diverges or kills its worker is recorded as failed, and the others go on. If workers or this
    process are killed, the same call resumes. Several processes may sweep one study at once: no run is computed twice.

    Args:
        study: the study, or the file of its specification.
        store: an open store; or its folder, created if needed; or the URL of its index.
        scheduler: "in-process"; "local": processes of this machine, one for every GPU or else for every core; the address of a
            Dask scheduler, "tcp://HOST:PORT"; or "slurm", "pbs" or "lsf": jobs, as Dask's own configuration describes them.
        workers: how many processes, of "local" and jobs.
        retries: how often a run is tried again if its worker was lost, or a file could not be read or written.
        progress: called several times a second; its values are the runs done, failed and reused, and the
            address of Dask's page.
        index: URL of the index, where store is a folder; by default a file in it.
        batch: how many flows to given times, that differ only in start, time and numbers of the law, one compiled program
            solves together, at most. Last digits of a run depend on it; the record of the run holds it.
        time_limit: seconds after which a run is ended and recorded as failed; the next call computes it again. In-process, a
            run is ended when compiled code returns, and only from the main thread.

    Raises:
        SpecError: a point of the study cannot be run; nothing is computed then.
        RecordError: the store cannot be used, or has another study of this name.
        SchedulerError: the scheduler cannot be reached, or started.
        SweepError: its workers cannot run mesascope, or it is gone; the disk is full, or a run's folder cannot be read.
        ValueError: 64-bit mode is off (in-process), or workers, retries or batch are out of range.
        KeyboardInterrupt: Ctrl-C; runs that have ended are kept.
    """
    _refuse_settings(scheduler, workers, retries, batch)
    if time_limit is not None:
        time_limit = float(finite_positive("time_limit", time_limit))
    if scheduler == IN_PROCESS:
        from mesascope.core import require_x64

        require_x64("a sweep in this process")
    spec = study if isinstance(study, StudySpec) else read_spec(study, StudySpec)
    show = progress or (lambda _: None)

    def prepared_so_far(stage: str, through: int, total: int) -> None:
        show(Progress(through, total, "runs", stage=stage))

    programs: dict[str, str] = {}
    plugins: set[str] = set()

    def look_at(run: str, point: Spec) -> None:
        plugins.update(map(str, getattr(point, "plugins", ())))
        program = program_of(point) if batch > 1 else None
        if program is not None:
            programs[run] = intern(program)

    record = check(spec, prepared_so_far, look_at)
    if batch > 1 and not programs:
        raise ValueError(
            f"batch = {batch}: study {spec.name!r} has no flow to a given time (kind = 'flow' with until = a number), and "
            "nothing else is solved together; leave out batch"
        )
    with _full_disk_explained(), ExitStack() as opened:
        place = opened.enter_context(_opened(store, index))
        _warn_without_locks(place.folders)
        prepared = prepare(spec, record, place, prepared_so_far)
        if scheduler == IN_PROCESS:
            prepared = without_killers(prepared, place, retries)
        if prepared.left:
            prepared_so_far("start workers", 0, len(prepared.left))
        request = Request(
            search_folders(spec),
            driver=secrets.token_hex(8),
            batch=batch,
            time_limit=time_limit,
            plugins=frozenset(plugins),
        )
        where = scheduler if prepared.left else IN_PROCESS  # without runs no cluster is started
        runner = opened.enter_context(_runner(where, workers, place.folders.root, spec.kind, request))
        announcement = opened.enter_context(
            announced(place.folders.root, spec.name, scheduler, runner.dashboard, len(record.runs))
        )
        tasks = batches(prepared.left, programs, place.folders, batch)
        drive = Drive(prepared, tasks, place, runner, request.driver, retries, announcement, show)
        drive.run()
    return SweepResult(
        study=spec.name,
        total=len(record.runs),
        done=len(drive.done),
        failed=len(drive.failed),
        reused=len(drive.reused),
        failures=grouped(drive.failed),
        unbatched=grouped(drive.unbatched),
        ids=tuple(record.runs),
        not_indexed=drive.not_indexed,
    )


def _refuse_settings(scheduler: Any, workers: int | None, retries: int, batch: Any) -> None:
    known = (IN_PROCESS, LOCAL, *QUEUES)
    given = scheduler if isinstance(scheduler, str) else ""
    if given not in known and not given.startswith(("tcp://", "tls://")):
        raise ValueError(
            f"scheduler {show(scheduler)} is unknown; use one of {', '.join(known)}, tcp://HOST:PORT"
        )
    if workers is not None and (scheduler not in known or scheduler == IN_PROCESS):
        raise ValueError(f"workers are not started for scheduler {show(scheduler)}; drop it, or use 'local'")
    if workers is not None:
        integer_at_least("workers", workers, 1)
    integer_at_least("retries", retries, 0)
    if not isinstance(batch, int | float) or not 1 <= batch <= _MAX_BATCH or batch % 1:
        raise ValueError(f"batch must be an integer from 1 to {_MAX_BATCH}, got {show(batch)}")


def _warn_without_locks(folders: RunFolders) -> None:
    if not folders.has_locks():
        warnings.warn(
            f"{folders.root}: its file system has no locks: a second sweep at the same time would compute the same runs again; "
            "use it for one sweep at a time, or choose another folder",
            stacklevel=3,
        )


@contextmanager
def _full_disk_explained() -> Iterator[None]:
    try:
        yield
    except RecordError as error:
        if is_full(error):
            raise SweepError(f"{error}; {RESUMES}") from error
        raise


@contextmanager
def _opened(store: "Store | str | os.PathLike[str]", index: str | None) -> "Iterator[Store]":
    """The store, closed after the block if it is opened here."""
    if isinstance(store, str | os.PathLike):
        with open_or_make(store, index) as opened:
            yield opened
    else:
        yield store


@contextmanager
def _runner(scheduler: str, workers: int | None, root: Path, kind: str, request: Request) -> Iterator[Runner]:
    if scheduler == IN_PROCESS:
        yield InProcess(root, request)
        return
    with client_of(scheduler, workers) as (client, replace_jobs):
        yield OnDask(client, replace_jobs, root, kind, request)
