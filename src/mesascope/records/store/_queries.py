"""Queries of the index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import URL, Connection, CursorResult, Engine, Select, func, select

from mesascope.records._files import RecordError

from ._engine import reading
from ._filters import STATUSES, Filter, condition, has_field, of_plans, read_filters
from ._folders import RunFolders
from ._index import study_seal
from ._models import RUN_ID
from ._rows import RunRow, row_seal, run_row, status_now, status_seal
from ._schema import OUTCOMES, POINTS, RUNS, STUDIES
from ._sync import confirm
from ._urls import damaged

_COLUMNS = [column for column in RUNS.columns if column.name != "brief"]
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "name", "kind", "status", "code", "started", "ended", "seal"), (str,)),
    **dict.fromkeys(("attempts", "written", "status_seal"), (int,)),
    **{"spec": (dict,), "outcome": (dict,), "axes": (list,)},
    **{"error": (str, type(None)), "seconds": (float, int, type(None))},
}
_is_id = re.compile(RUN_ID).fullmatch


def find(engine: Engine, folders: RunFolders, filters: Sequence[str], limit: int | None) -> list[RunRow]:
    """The runs that all the filters hold for, those that ended last first, each confirmed by its folder."""
    plans = of_plans(filters)
    if len(plans) < len(filters):
        # A record that has changed may now be one of those that are looked for. Those that were not done are read again
        # whenever the store is opened.
        confirm_all(engine, folders, [*plans, "status=done"])
    return find_known(engine, folders, filters, limit)


def find_known(
    engine: Engine, folders: RunFolders, filters: Sequence[str], limit: int | None
) -> list[RunRow]:
    """As `find`, among the runs for which the filters hold by the index."""
    read = read_filters(filters)
    joined = select(*_COLUMNS, OUTCOMES.c.outcome).join_from(RUNS, OUTCOMES, OUTCOMES.c.run == RUNS.c.id)
    chosen = _where(joined, read, engine).order_by(RUNS.c.ended.desc(), RUNS.c.id.desc())
    limit = None if limit is None else min(limit, 2**31)  # databases take no more than 64 bits
    if limit is not None and not any(map(_by_locks, read)):
        chosen = chosen.limit(limit)
    while True:
        with reading(engine) as connection, _streamed(connection, chosen) as rows:
            sound = _once((_sound(row._asdict(), engine) for row in rows), engine)
            each = ((run_row(row, folders), row["written"]) for row in sound)
            found = list(islice((one for one in each if _matches(one[0].status, read)), limit))
        if not confirm(engine, folders, ((row.id, written) for row, written in found)):
            return [row for row, _ in found]


def confirm_all(engine: Engine, folders: RunFolders, filters: Sequence[str]) -> None:
    """Read the records again, of the runs that all the filters hold for, that have changed since the index was made."""
    columns = (RUNS.c.id, RUNS.c.status, RUNS.c.written, RUNS.c.status_seal)
    found = {}
    with reading(engine) as connection:
        for run, status, written, seal in connection.execute(
            _where(select(*columns), read_filters(filters), engine)
        ):
            if run in found or status_seal(run, status, written) != seal:
                raise damaged(engine.url, f"run {run!r} is {status!r}, which is not what was written")
            found[run] = written
    confirm(engine, folders, found.items())


def _streamed(connection: Connection, chosen: Select[Any]) -> CursorResult[Any]:
    """The rows, fetched as they are asked for; close it."""
    return connection.execution_options(yield_per=500).execute(chosen)


def count(engine: Engine, folders: RunFolders, filters: Sequence[str]) -> int:
    """The number of runs that all the filters hold for."""
    read = read_filters(filters)
    with reading(engine) as connection:
        if not any(map(_by_locks, read)):
            chosen = _where(select(func.count()).select_from(RUNS), read, engine)
            return int(connection.execute(chosen).scalar_one())
        each = connection.execute(_where(select(RUNS.c.id, RUNS.c.status), read, engine))
        return sum(_matches(status_now(folders, run, status), read) for run, status in each)


def refuse_unknown(engine: Engine, filters: Sequence[str]) -> None:
    """Refuse filters by an unknown study or field; by one of outcomes only once a run of every kind is done.

    Raises:
        RecordError: the first such filter, or one that cannot be read.
    """
    for one in read_filters(filters):
        head = one.name.partition(".")[0]
        if one.name == "study":
            with reading(engine) as connection:
                _study_row(connection, one.value)
        elif head in ("spec", "outcome"):
            having = select(RUNS.c.id).where(has_field(one.name, engine.dialect.name))
            with reading(engine) as connection:
                if connection.scalar(having.limit(1)) is not None or _may_come(connection, head):
                    continue
            long = " that is searched (long and nested lists are not)" if head == "outcome" else ""
            raise RecordError(
                f"filter {one.written!r}: no run has a field {one.name}{long}; `mesascope runs show ID` lists those of a run"
            )


def _may_come(connection: Connection, head: str) -> bool:
    """Whether the field may still appear: there is no run, or, for outcomes, some kind has no run that is done."""
    kinds = select(RUNS.c.kind).distinct()
    every = set(connection.scalars(kinds))
    known = every if head == "spec" else set(connection.scalars(kinds.where(RUNS.c.status == "done")))
    return not every or every != known


def _where(chosen: Select[Any], filters: Sequence[Filter], engine: Engine) -> Select[Any]:
    """Add the conditions that the index can decide: it does not distinguish running from planned runs."""
    for one in filters:
        if one.sign == "=" or not _by_locks(one):
            chosen = chosen.where(condition(one, engine.dialect.name))
    return chosen


def _by_locks(one: Filter) -> bool:
    """Whether the locks of the folders decide: in the index every run that has not ended is planned."""
    return one.name == "status" and one.value in ("planned", "running")


def _typed(row: dict[str, Any], url: URL) -> dict[str, Any]:
    """A row whose values have the types of their columns: SQLite may read anything from a damaged file.

    Raises:
        DamagedIndexError: one of them is not.
    """
    for name, value in row.items():
        if not isinstance(value, _TYPES[name]):
            raise damaged(url, f"it holds {value!r} as {name}")
    return row


def _sound(row: dict[str, Any], engine: Engine) -> dict[str, Any]:
    """A row of a run, with its outcome, that is what was written.

    Raises:
        DamagedIndexError: it is not. The seals of rows are compared on SQLite, which reads many a damaged file; PostgreSQL
            changes how numbers of specifications are written, and has checksums of its own.
    """
    run, status = (_typed(row, engine.url)[name] for name in ("id", "status"))
    if not _is_id(run) or status not in STATUSES:
        raise damaged(engine.url, f"run {run!r} is {status!r}")
    if engine.dialect.name == "sqlite" and row["seal"] != row_seal(row):
        raise damaged(engine.url, f"the row of run {run} is not what was written")
    return row


def _once(rows: Iterable[dict[str, Any]], engine: Engine) -> Iterator[dict[str, Any]]:
    """Rows of runs, each of which is there once.

    Raises:
        DamagedIndexError: one is there twice.
    """
    seen = set()
    for row in rows:
        if row["id"] in seen:
            raise damaged(engine.url, f"run {row['id']} is there twice")
        seen.add(row["id"])
        yield row


def _matches(status: str, filters: Sequence[Filter]) -> bool:
    return all((status == one.value) == (one.sign == "=") for one in filters if one.name == "status")


def study_points(
    engine: Engine, study: str
) -> tuple[dict[str, Any], list[tuple[int, str, str, dict[str, Any]]], list[str]]:
    """A study's row; place, run, status and outcome of each of its points; the versions of the code of its runs.

    Raises:
        RecordError: there is no such study.
    """
    with reading(engine) as connection:
        study_row = _typed(_study_row(connection, study), engine.url)
        of_study = select(POINTS.c.place, POINTS.c.run).where(POINTS.c.study == study)
        places = [(place, run) for place, run in connection.execute(of_study.order_by(POINTS.c.place))]
        if study_row["seal"] != study_seal(study_row, places):
            raise damaged(engine.url, f"the rows of study {study} are not what was written")
        chosen = select(*_COLUMNS, OUTCOMES.c.outcome).join_from(RUNS, OUTCOMES, OUTCOMES.c.run == RUNS.c.id)
        members = select(POINTS.c.run).where(POINTS.c.study == study)
        with _streamed(connection, chosen.where(RUNS.c.id.in_(members))) as rows:
            runs = {row["id"]: row for row in _once((_sound(one._asdict(), engine) for one in rows), engine)}
    points = [(place, runs[run]) for place, run in places if run in runs]
    return (
        study_row,
        [(place, run["id"], run["status"], run["outcome"]) for place, run in points],
        sorted({run["code"] for run in runs.values()}),
    )


def _study_row(connection: Connection, study: str) -> dict[str, Any]:
    """The row of a study.

    Raises:
        RecordError: there is no such study.
    """
    row = connection.execute(select(STUDIES).where(STUDIES.c.name == study)).mappings().first()
    if row is None:
        known = ", ".join(connection.scalars(select(STUDIES.c.name).order_by(STUDIES.c.name))) or "none"
        raise RecordError(f"no study {study!r} in this store; it has: {known}")
    return dict(row)


def study_statuses(engine: Engine) -> dict[str, dict[str, int]]:
    """How many runs of every study have each status, according to the index."""
    joined = STUDIES.outerjoin(POINTS, POINTS.c.study == STUDIES.c.name).outerjoin(
        RUNS, RUNS.c.id == POINTS.c.run
    )
    runs = func.count(func.distinct(RUNS.c.id))
    chosen = select(STUDIES.c.name, RUNS.c.status, runs.label("runs")).select_from(joined)
    found: dict[str, dict[str, int]] = {}
    with reading(engine) as connection:
        for row in connection.execute(
            chosen.group_by(STUDIES.c.name, RUNS.c.status).order_by(STUDIES.c.name)
        ):
            statuses = found.setdefault(row.name, {})
            if row.status is not None:
                statuses[row.status] = row.runs
    return found
