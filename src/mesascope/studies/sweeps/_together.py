"""Several flows in one compiled call, each from its folder into its folder."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from mesascope.records import InUseError, RecordError, RunFolders
from mesascope.specs import Spec

from .._flow import FlowSpec
from ._attempts import begin_attempt, leave_attempt
from ._compute import Computed, compute_together
from ._execute import (
    Ended,
    Stopwatch,
    blamed,
    ended,
    execute,
    forget_programs_now_and_then,
    of_the_machine,
    one_at_a_time,
    read_planned,
    told,
)
from ._isolation import isolated


def execute_together(
    root: str | os.PathLike[str],
    runs: Sequence[str],
    batch: int,
    *,
    search: Sequence[str] = (),
    driver: str = "",
    alone: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Ended, ...]:
    """Compute planned runs, those that have not ended and that nobody computes together, and record how each ended.

    Whatever ends the call as a whole says nothing of a single run: they are then computed one by one.

    Args:
        root: the folder of the store.
        runs: ids: one of any kind, or several flows that can be solved together.
        batch: how many flows are solved together, at most. Programs are compiled for powers of two, or for `batch` itself;
            where there are fewer flows, the last one is solved several times.
        search: folders in which modules of functions are found.
        driver: for whom; it is written down with every attempt.
        alone: whether this process is the driver itself.
        stopped: whether somebody has pressed Ctrl-C.

    Raises:
        Exception: as for `execute`; what has been recorded until then is kept.
    """
    found: dict[str, Ended] = {}
    if len(runs) > 1:
        folders = RunFolders(root)
        with of_the_machine(folders, runs), one_at_a_time:
            found = _together(folders, runs, batch, driver, alone, stopped)
    one = partial(execute, root, search=search, driver=driver, alone=alone, stopped=stopped)
    return tuple(found.get(run) or one(run) for run in runs)


def _together(
    folders: RunFolders,
    runs: Sequence[str],
    batch: int,
    driver: str,
    alone: bool,
    stopped: Callable[[], bool],
) -> dict[str, Ended]:
    """How those ended that could be computed together: two at least, or none."""
    with ExitStack() as held:
        mine = {run: folders.planned(run) for run in runs if _is_taken(folders, run, held)}
        if len(mine) < 2:
            return {}
        lanes = min(batch, 1 << (len(mine) - 1).bit_length())
        specs = [read_planned(one) for one in mine.values()]
        watches: dict[str, Stopwatch] = {}
        found: dict[str, Ended] = {}
        why: str | None = None
        try:
            for run in mine:
                attempts = begin_attempt(folders.folder(run), driver, alone, lanes)
                watches[run] = Stopwatch(attempts, lanes, len(mine))
            computed, why = _computed(next(iter(mine)), specs, lanes, stopped)
            for one, (outcome, data, error) in zip(mine.values(), computed, strict=False):
                record = watches[one.id].record(one, outcome, error, None)
                found[one.id] = folders.finish(record, data).state
        finally:  # of the others nothing is known, and the process lives: they have not killed it
            for run in watches.keys() - found.keys():
                with suppress(RecordError):
                    leave_attempt(folders.folder(run), why)
        forget_programs_now_and_then()
        return found


def _is_taken(folders: RunFolders, run: str, held: ExitStack) -> bool:
    """Whether a run is ours to compute; if so, nobody else gets it until `held` is closed."""
    try:
        held.enter_context(folders.holding(run))
    except InUseError:
        return False
    return not ended(folders.run(run))


def _computed(
    first: str, specs: Sequence[Spec], lanes: int, stopped: Callable[[], bool]
) -> tuple[list[Computed], str | None]:
    """What the flows give; nothing where something was raised, by whichever of them, and what that was."""
    flows = [spec for spec in specs if isinstance(spec, FlowSpec)]
    filled = [*flows, *[flows[-1]] * (lanes - len(flows))]
    try:
        with isolated(first):
            return [blamed(one) for one in compute_together(filled)[: len(flows)]], None
    except Exception as error:
        if stopped():
            raise KeyboardInterrupt from error
        return [], told(error)
