"""Before a sweep: check every point, plan every run, and find the runs that have ended already."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from mesascope.records import (
    InUseError,
    PlannedRun,
    RecordError,
    RunFolders,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    UnreadableError,
    open_store,
)
from mesascope.specs import Spec, SpecError

from ._attempts import attempts, driver_deaths
from ._axes import ZipSpec
from ._execute import KILLED, is_final, record_failure
from ._modules import importable
from ._run_id import InputFileError, planned_run
from ._study import StudySpec

if TYPE_CHECKING:
    from mesascope.records import Store

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the stage, the number of points that are through with it, and the number of all."""

_Item = TypeVar("_Item")
_TELL_EVERY = 100  # points
_ENTER_AT_ONCE = 5000  # plans


def _ignore(*_: object) -> None: ...


class Prepared(NamedTuple):
    """A study in its store, ready to be computed.

    Attributes:
        record: the study.
        left: ids of the runs that have not ended, in the order of the points.
        cached: id → status, of those that have.
    """

    record: StudyRecord
    left: list[str]
    cached: dict[str, str]


def search_folders(study: StudySpec) -> tuple[str, ...]:
    """The folders in which modules of functions are found: that of the specification, and the current one."""
    return tuple(dict.fromkeys((str(study.folder), os.getcwd())))


def check(
    study: StudySpec, progress: OnProgress = _ignore, visit: Callable[[str, Spec], None] = _ignore
) -> StudyRecord:
    """Check every point, and return the study with the ids of its runs. Nothing is written.

    Args:
        study: its specification.
        progress: called now and then.
        visit: called with the id and the specification of the run of every point.

    Raises:
        SpecError: a point cannot be run.
    """
    points = []
    with importable(search_folders(study)):
        for point in _told("check points", study.points(), study.size, progress):
            try:
                run = planned_run(study.kind, point.spec).id
            except InputFileError as error:
                raise study.located(SpecError(str(error), *error.place), point.place) from error
            visit(run, point.spec)
            points.append(StudyPoint.model_construct(run=run, place=point.place))
    return StudyRecord(
        name=study.name,
        kind=study.kind,
        spec=study.model_dump(mode="json"),
        axes=tuple(_axes(study)),
        points=tuple(points),
    )


def _told(stage: str, items: Iterable[_Item], count: int, progress: OnProgress) -> Iterator[_Item]:
    for i, item in enumerate(items):
        if i % _TELL_EVERY == 0:
            progress(stage, i, count)
        yield item


def _axes(study: StudySpec) -> Iterator[StudyAxis]:
    for axis, choices in zip(study.axes, study.choices, strict=True):
        columns = [tuple(choice.labels[k] for choice in choices) for k in range(len(axis.paths))]
        if isinstance(axis, ZipSpec):
            yield StudyAxis(
                name=axis.dimension, coordinates=dict(zip(axis.coordinates, columns, strict=True))
            )
        else:
            yield StudyAxis(name=axis.dimension, labels=columns[0])


def open_or_make(where: str | os.PathLike[str], index: str | None = None) -> "Store":
    """Open a store, creating it if needed.

    Raises:
        RecordError: as for `open_store`.
    """
    if "://" not in str(where):
        RunFolders.create(where)
    return open_store(where, index)


def prepare(
    study: StudySpec, record: StudyRecord, store: "Store", progress: OnProgress = _ignore
) -> Prepared:
    """Record the study, and every run of it that is not in the store.

    Raises:
        RecordError: another study has this name, or something cannot be written.
    """
    _refuse_another(store.folders, record)
    cached = _cached(store, record, progress)
    left = [run for run in record.runs if run not in cached]
    _plan(study, record, store, set(left), progress)
    store.write_study(record)
    return Prepared(record, left, cached)


def _refuse_another(folders: RunFolders, record: StudyRecord) -> None:
    """Refuse to replace a study by one that does not contain all its runs."""
    if record.name not in folders.studies():
        return
    there = folders.study(record.name)
    if there.spec != record.spec and not set(there.runs) <= set(record.runs):
        raise RecordError(
            f"the store has another study {record.name!r}, whose runs are not all in this one; give this one another name"
        )


def _cached(store: "Store", record: StudyRecord, progress: OnProgress) -> dict[str, str]:
    """The runs that need not be computed, and their statuses; a warning for each run whose record is damaged."""
    known = store.folders.studies()
    wanted = set(record.runs)
    found: dict[str, str] = {}
    if record.name in known:  # opening the store has brought the index up to date
        for row in store.rows([f"study={record.name}", "status=done"]):
            if row.id in wanted:
                found[row.id] = "done"
    others = sorted(wanted - found.keys())
    for run in _told("look for records", others, len(others), progress):
        try:
            one = store.folders.run(run)
        except UnreadableError:
            raise
        except RecordError as error:
            what = str(error).rpartition(";")[0] or error
            warnings.warn(
                f"{what}; run {run} is computed again, and this record kept as run.json.damaged", stacklevel=2
            )
            continue
        if one is not None and is_final(one):
            found[run] = one.status
    return found


def _plan(
    study: StudySpec, record: StudyRecord, store: "Store", left: set[str], progress: OnProgress
) -> None:
    looked = _told("look for plans", left, len(left), progress)
    missing = {run for run in looked if not _is_planned_as_is(store.folders, run)}
    places: dict[str, tuple[int, ...]] = {}
    for point in record.points:
        if point.run in missing:
            places.setdefault(point.run, point.place)
    with importable(search_folders(study)):
        for run, place in _told("write plans", places.items(), len(places), progress):
            planned = planned_run(study.kind, study.point(place).spec)
            if planned.id != run:
                raise RecordError(
                    "files that the study reads have changed during the check; give the command again"
                )
            _write_plan(store.folders, planned)
    runs = sorted(places)
    for i in range(0, len(runs), _ENTER_AT_ONCE):
        progress("enter plans", i, len(runs))
        store.enter(runs[i : i + _ENTER_AT_ONCE])


def _write_plan(folders: RunFolders, planned: PlannedRun) -> None:
    """Plan a run. If it was planned with equal files at other paths, the plan gets the paths of now."""
    try:
        there = folders.planned(planned.id)
    except RecordError:  # absent, or damaged
        folders.plan(planned)
        return
    if there != planned:
        with suppress(InUseError), folders.holding(planned.id):
            folders.folder(planned.id).joinpath("planned.json").unlink()
            folders.plan(planned)


def _is_planned_as_is(folders: RunFolders, run: str) -> bool:
    """Whether a run is planned, by a plan without paths: a path may be another one now."""
    if not folders.is_planned(run):
        return False
    try:
        return not _holds_paths(folders.planned(run).spec)
    except RecordError:  # damaged
        return False


def _holds_paths(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_paths, value.values()))
    if isinstance(value, list):
        return any(map(_holds_paths, value))
    return isinstance(value, str) and os.path.isabs(value)


def without_killers(prepared: Prepared, store: "Store", retries: int) -> Prepared:
    """For a sweep in this process: runs that have killed a driver come last; after more than `retries` deaths they fail.

    Raises:
        RecordError: a failure cannot be written.
    """
    first: list[str] = []
    last: list[str] = []
    cached = dict(prepared.cached)
    for run in prepared.left:
        deaths = _driver_deaths(store, run)
        if deaths > retries and _has_failed(store.folders, run, deaths):
            cached[run] = "failed"
        else:
            (last if deaths else first).append(run)
    return prepared._replace(left=first + last, cached=cached)


def _driver_deaths(store: "Store", run: str) -> int:
    folder = store.folders.folder(run)
    if not attempts(folder):
        return 0
    record = store.folders.reusable(run)
    return driver_deaths(folder, record.attempts if record is not None else 0)


def _has_failed(folders: RunFolders, run: str, deaths: int) -> bool:
    """Record that it has failed, unless another process computes it now."""
    why = (
        f"KilledDriver: the process that computed it died {deaths} times (killed, out of memory, or crashed); "
        "mesascope runs rm lets it be tried again, with --scheduler local it kills workers only"
    )
    try:
        record_failure(folders, run, KILLED, why)
    except InUseError:
        return False
    return True
