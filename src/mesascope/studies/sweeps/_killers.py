"""Runs that have killed the driver that computed them in its own process: they come last, and not for ever."""

from typing import TYPE_CHECKING

from mesascope.records import InUseError

from ._attempts import attempts, deaths
from ._execute import KILLED, Stopwatch
from ._prepare import Prepared

if TYPE_CHECKING:
    from mesascope.records import Store


def without_killers(prepared: Prepared, store: "Store", retries: int) -> Prepared:
    """What is left, runs under which a driver has died after all others; one that did so too often has failed.

    Raises:
        RecordError: that cannot be written.
    """
    first: list[str] = []
    last: list[str] = []
    cached = dict(prepared.cached)
    for run in prepared.left:
        died = _deaths(store, run)
        if died > retries and _has_failed(store, run, died):
            cached[run] = "failed"
        else:
            (last if died else first).append(run)
    return prepared._replace(left=first + last, cached=cached)


def _deaths(store: "Store", run: str) -> int:
    folder = store.folders.folder(run)
    if not attempts(folder):
        return 0
    record = store.folders.run(run)
    return deaths(folder, record.attempts if record is not None else 0)


def _has_failed(store: "Store", run: str, died: int) -> bool:
    """Record it, unless somebody else computes the run now."""
    why = (
        f"KilledDriver: the process that computed it died {died} times (killed, out of memory, or crashed); "
        "mesascope runs rm lets it be tried again, with --scheduler local it kills workers only"
    )
    try:
        with store.folders.holding(run):
            watch = Stopwatch(attempts(store.folders.folder(run)))
            store.folders.finish(watch.record(store.folders.planned(run), {"failure": KILLED}, why, None))
    except InUseError:
        return False
    return True
