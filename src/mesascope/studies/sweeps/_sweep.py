"""All runs of a study, wherever there are workers."""

import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from sys import intern
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from mesascope.core import Progress
from mesascope.records import RecordError, RunFolders
from mesascope.specs import Spec

from .._flows import program_of
from .._read import read_spec
from ._batches import batches
from ._clusters import client_of
from ._drive import Drive
from ._drivers import announced
from ._execute import is_full
from ._failures import Failure, grouped
from ._jobs import QUEUES
from ._killers import without_killers
from ._prepare import check, open_or_make, prepare, search_folders
from ._runners import RESUMES, InProcess, Runner, SweepError
from ._study import StudySpec

if TYPE_CHECKING:
    from mesascope.records import Store

IN_PROCESS, LOCAL = "in-process", "local"
_MAX_TOGETHER = 512  # flows: each is held by an open file, and many systems grant a process 1024


class SweepResult(BaseModel):
    """What a sweep gives.

    Attributes:
        study: its name.
        total: its runs: points that mean the same are one.
        done: runs computed now.
        failed: runs that failed, now or before.
        reused: runs that were done before, or by somebody else meanwhile.
        failures: the reasons, those that are alike together.
        apart: why runs of a batch could not be computed together, and were computed one by one, those that are alike together.
        ids: of all runs, in the order of the points.
        not_indexed: why the index lacks some of them until the store is opened again; None where it has all.
    """

    model_config = ConfigDict(frozen=True)

    study: str
    total: int
    done: int
    failed: int
    reused: int
    failures: tuple[Failure, ...]
    apart: tuple[Failure, ...]
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
) -> SweepResult:
    """Compute the runs of a study that are not in the store yet.

    Every run ends by itself: one that raises, diverges or kills its worker is recorded as failed, and the others go on. Whoever
    is killed, workers or this process, the same call goes on where they were. Several may sweep one study at once: no run is
    computed twice.

    Args:
        study: the study, or the file of its specification.
        store: an open store; or its folder, which is made if there is none; or the URL of its index.
        scheduler: "in-process"; "local": processes of this machine, one for every GPU or else for every core; the address of a
            Dask scheduler, "tcp://HOST:PORT"; or "slurm", "pbs" or "lsf": jobs, as Dask's own configuration describes them.
        workers: how many processes, of "local" and jobs.
        retries: how often a run is tried again whose worker was lost, or that could not read or write a file.
        progress: called now and then; values: runs done, failed and reused, and the address of Dask's page.
        index: URL of the index, where store is a folder; by default a file in it.
        batch: how many flows to given times, that differ in start, time and numbers of the law only, one compiled program
            solves together, at most. Last digits of a run depend on it; its record says which it was.

    Raises:
        SpecError: a point of the study cannot be run; nothing is computed then.
        RecordError: the store cannot be used, or has another study of this name.
        SchedulerError: the scheduler cannot be reached, or started.
        SweepError: its workers cannot run mesascope, or it is gone; the disk is full, or a run's folder cannot be read.
        ValueError: 64-bit mode is off (in-process); workers, retries or batch that make no sense.
        KeyboardInterrupt: Ctrl-C; what has ended is kept.
    """
    _refuse_settings(scheduler, workers, retries, batch)
    if scheduler == IN_PROCESS:
        from mesascope.core import require_x64

        require_x64("a sweep in this process")
    spec = study if isinstance(study, StudySpec) else read_spec(study, StudySpec)
    show = progress or (lambda _: None)

    def tell(stage: str, through: int, total: int) -> None:
        show(Progress(through, total, "runs", stage=stage))

    programs: dict[str, str] = {}

    def see(run: str, point: Spec) -> None:
        program = program_of(point) if batch > 1 else None
        if program is not None:
            programs[run] = intern(program)

    record = check(spec, tell, see)
    if batch > 1 and not programs:
        raise ValueError(
            f"batch = {batch}: study {spec.name!r} has no flow to a given time (kind = 'flow' with until = a number), and "
            "nothing else is solved together; drop it"
        )
    with _full_disks_told(), ExitStack() as opened:
        place = opened.enter_context(_opened(store, index))
        _warn_without_locks(place.folders)
        prepared = prepare(spec, record, place, tell)
        if scheduler == IN_PROCESS:
            prepared = without_killers(prepared, place, retries)
        if prepared.left:
            tell("start workers", 0, len(prepared.left))
        which = scheduler if prepared.left else IN_PROCESS  # nothing to do needs no cluster
        driver = secrets.token_hex(8)
        runner = opened.enter_context(_runner(which, workers, place, spec, driver, batch))
        announcement = opened.enter_context(
            announced(place.folders.root, spec.name, scheduler, runner.dashboard, len(record.runs))
        )
        tasks = batches(prepared.left, programs, place.folders, batch)
        drive = Drive(prepared, tasks, place, runner, driver, retries, announcement, show)
        drive.run()
    return SweepResult(
        study=spec.name,
        total=len(record.runs),
        done=len(drive.done),
        failed=len(drive.failed),
        reused=len(drive.reused),
        failures=grouped(drive.failed),
        apart=grouped(drive.apart),
        ids=tuple(record.runs),
        not_indexed=drive.not_indexed,
    )


def _refuse_settings(scheduler: str, workers: int | None, retries: int, batch: int) -> None:
    known = (IN_PROCESS, LOCAL, *QUEUES)
    if scheduler not in known and not scheduler.startswith(("tcp://", "tls://")):
        raise ValueError(
            f"scheduler {scheduler!r} is unknown; use one of {', '.join(known)}, tcp://HOST:PORT"
        )
    if workers is not None and (scheduler not in known or scheduler == IN_PROCESS):
        raise ValueError(f"workers are not started for scheduler {scheduler!r}; drop it, or use 'local'")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if retries < 0:
        raise ValueError(f"retries must not be negative, got {retries}")
    if not 1 <= batch <= _MAX_TOGETHER or batch % 1:
        raise ValueError(f"batch must be an integer from 1 to {_MAX_TOGETHER}, got {batch!r}")


def _warn_without_locks(folders: RunFolders) -> None:
    if not folders.has_locks():
        warnings.warn(
            f"{folders.root}: its file system knows no locks: nobody sees which runs are computed, and a second sweep at the "
            "same time would compute them again; let one sweep at a time use it, or choose another folder",
            stacklevel=3,
        )


@contextmanager
def _full_disks_told() -> Iterator[None]:
    try:
        yield
    except RecordError as error:
        if is_full(error):
            raise SweepError(f"{error}; {RESUMES}") from error
        raise


@contextmanager
def _opened(store: "Store | str | os.PathLike[str]", index: str | None) -> "Iterator[Store]":
    """The store; one that was given open stays open."""
    if isinstance(store, str | os.PathLike):
        with open_or_make(store, index) as opened:
            yield opened
    else:
        yield store


@contextmanager
def _runner(
    scheduler: str, workers: int | None, store: "Store", study: StudySpec, driver: str, batch: int
) -> Iterator[Runner]:
    root, search = store.folders.root, search_folders(study)
    if scheduler == IN_PROCESS:
        yield InProcess(root, search, driver, batch)
        return
    from ._on_dask import OnDask

    with client_of(scheduler, workers) as (client, keep):
        yield OnDask(client, keep, root, search, study.kind, driver, batch)
