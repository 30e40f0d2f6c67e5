"""Several flows in one compiled call: which runs are computed together, and how."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from mesascope.records import InUseError, RecordError, RunFolders
from mesascope.specs import Spec

from .._flow import FlowSpec
from ._attempts import abandon_attempt, attempts, begin_attempt
from ._compute import Computed, compute_together
from ._execute import (
    End,
    Request,
    Stopwatch,
    compute_lock,
    error_line,
    execute,
    forget_programs_sometimes,
    is_final,
    machine_errors,
    read_planned,
    with_failure,
)
from ._isolation import isolated
from ._limits import limited


def batches(
    left: Sequence[str], programs: Mapping[str, str], folders: RunFolders, size: int
) -> list[tuple[str, ...]]:
    """The runs that are left, in their order, up to `size` runs of one program together.

    A run that was begun before is computed alone: only then is it known which run killed its process, and runs that were killed
    together might be killed together again.

    Args:
        left: ids.
        programs: run → its program (see `program_of`); runs that are computed alone are not in it.
        folders: of the store.
        size: how many runs go together, at most.
    """
    found: list[list[str]] = []
    unfilled: dict[str, list[str]] = {}
    for run in left:
        program = programs.get(run)
        if program is None or attempts(folders.folder(run)):
            found.append([run])
            continue
        if program not in unfilled:
            unfilled[program] = []
            found.append(unfilled[program])
        unfilled[program].append(run)
        if len(unfilled[program]) == size:
            del unfilled[program]
    return [tuple(runs) for runs in found]


def execute_together(root: str | os.PathLike[str], runs: Sequence[str], request: Request) -> tuple[End, ...]:
    """Compute planned runs together, except those that have ended or are computed elsewhere, and record how each ended.

    If the call as a whole fails, the runs are computed one by one: any of them may be the cause.

    Args:
        root: the folder of the store.
        runs: ids: one run of any kind, or several flows that can be solved together.
        request: how to compute them.

    Raises:
        Exception: as for `execute`; runs that were recorded before stay recorded.
    """
    found: dict[str, End] = {}
    if len(runs) > 1:
        folders = RunFolders(root)
        with machine_errors(folders, runs), compute_lock:
            found = _together(folders, runs, request)
    return tuple(found.get(run) or execute(root, run, request) for run in runs)


def _together(folders: RunFolders, runs: Sequence[str], request: Request) -> dict[str, End]:
    """How the runs ended that could be computed together: two at least, or none."""
    with ExitStack() as locks:
        mine = {run: folders.planned(run) for run in runs if _is_locked(folders, run, locks)}
        if len(mine) < 2:
            return {}
        size = min(request.batch, 1 << (len(mine) - 1).bit_length())
        specs = [read_planned(one, request.plugins) for one in mine.values()]
        watches: dict[str, Stopwatch] = {}
        found: dict[str, End] = {}
        why: str | None = None
        try:
            for run in mine:
                count = begin_attempt(folders.folder(run), request.driver, request.in_driver, size)
                watches[run] = Stopwatch(count, size, len(mine))
            computed, why = _computed(next(iter(mine)), specs, size, request)
            for one, (outcome, data, error) in zip(mine.values(), computed, strict=False):
                record = watches[one.id].record(one, outcome, error, None)
                found[one.id] = folders.finish(record, data).status
        finally:  # the process lives: the runs without a record have not killed it
            for run in watches.keys() - found.keys():
                with suppress(RecordError):
                    abandon_attempt(folders.folder(run), why)
        forget_programs_sometimes()
        return found


def _is_locked(folders: RunFolders, run: str, locks: ExitStack) -> bool:
    """Lock a run for this process until `locks` is closed; whether that went well and the run has not ended."""
    try:
        locks.enter_context(folders.holding(run))
    except InUseError:
        return False
    return not is_final(folders.reusable(run))


def _computed(
    first: str, specs: Sequence[Spec], size: int, request: Request
) -> tuple[list[Computed], str | None]:
    """The results of the flows; if any of them raised an exception, no results, and that exception."""
    flows = [spec for spec in specs if isinstance(spec, FlowSpec)]
    filled = [*flows, *[flows[-1]] * (size - len(flows))]
    try:
        limit = None if request.time_limit is None else request.time_limit * len(flows)
        # if it is reached, the runs are computed one by one
        with isolated(first), limited(limit, request.in_driver, lambda _: None):
            return [with_failure(one) for one in compute_together(filled)[: len(flows)]], None
    except (Exception, SystemExit) as error:
        if request.stopped():
            raise KeyboardInterrupt from error
        return [], error_line(error)
