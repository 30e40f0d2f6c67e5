"""Queries of the index."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import URL, Connection, CursorResult, Engine, Select, Text, cast, func, select

from mesascope.records._files import RecordError

from ._filters import STATUSES, Filter, condition, has_field, of_plans, read_filters
from ._folders import RunFolders
from ._index import times
from ._models import RUN_ID
from ._rows import RunRow, outcome_checksum, run_row, status_now
from ._schema import OUTCOMES, POINTS, RUNS, STUDIES
from ._sync import confirm
from ._tally import checked
from ._urls import damaged

_COLUMNS = [column for column in RUNS.columns if column.name != "brief"]
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "name", "kind", "status", "code", "started", "ended"), (str,)),
    **dict.fromkeys(("attempts", "written", "outcome_checksum"), (int,)),
    **{"spec": (dict,), "axes": (list,)},
    **{"error": (str, type(None)), "seconds": (float, int, type(None))},
}
_is_id = re.compile(RUN_ID).fullmatch
_WITH_OUTCOMES = select(*_COLUMNS, cast(OUTCOMES.c.outcome, Text).label("outcome")).join_from(
    RUNS, OUTCOMES, OUTCOMES.c.run == RUNS.c.id, isouter=True
)


def find(engine: Engine, folders: RunFolders, filters: Sequence[str], limit: int | None) -> list[RunRow]:
    """The runs that all the filters hold for, those that ended last first, each confirmed by its folder."""
    plans = of_plans(filters)
    # A record that has changed may now be one of those that are looked for. Those that were not done are read again whenever
    # the store is opened.
    others = [*plans, "status=done"] if len(plans) < len(filters) else None
    return _find(engine, folders, filters, limit, others)


def find_known(
    engine: Engine, folders: RunFolders, filters: Sequence[str], limit: int | None
) -> list[RunRow]:
    """As `find`, among the runs for which the filters hold by the index."""
    return _find(engine, folders, filters, limit, None)


def _find(
    engine: Engine,
    folders: RunFolders,
    filters: Sequence[str],
    limit: int | None,
    others: Sequence[str] | None,
) -> list[RunRow]:
    """Confirm those that are found, and those that the filters `others` hold for."""
    read = read_filters(filters)
    chosen = _where(_WITH_OUTCOMES, read, engine).order_by(RUNS.c.ended.desc(), RUNS.c.id.desc())
    limit = None if limit is None else min(limit, 2**31)  # databases take no more than 64 bits
    if limit is not None and not any(map(_by_locks, read)):
        chosen = chosen.limit(limit)
    while True:
        with checked(engine) as connection:
            marks = {} if others is None else _marks(connection, others)
            with _streamed(connection, chosen) as rows:
                sound = (_sound(row._asdict(), engine) for row in rows)
                each = ((run_row(row, folders), row["written"]) for row in sound)
                found = list(islice((one for one in each if _matches(one[0].status, read)), limit))
        marks |= {row.id: written for row, written in found}
        if not confirm(engine, folders, marks.items()):
            return [row for row, _ in found]


def confirm_all(engine: Engine, folders: RunFolders, filters: Sequence[str]) -> None:
    """Read the records again, of the runs that all the filters hold for, that have changed since the index was made."""
    with checked(engine) as connection:
        marks = _marks(connection, filters)
    confirm(engine, folders, marks.items())


def _marks(connection: Connection, filters: Sequence[str]) -> dict[str, int]:
    """The runs that all the filters hold for, with the marks of their records."""
    chosen = select(RUNS.c.id, RUNS.c.written)
    return times(connection, _where(chosen, read_filters(filters), connection.engine), RUN_ID)


def _streamed(connection: Connection, chosen: Select[Any]) -> CursorResult[Any]:
    """The rows, fetched as they are asked for; close it."""
    return connection.execution_options(yield_per=500).execute(chosen)


def count(engine: Engine, folders: RunFolders, filters: Sequence[str]) -> int:
    """The number of runs that all the filters hold for."""
    read = read_filters(filters)
    with checked(engine) as connection:
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
    read = read_filters(filters)
    with checked(engine) as connection:
        for one in read:
            _refuse_unknown(connection, one)


def _refuse_unknown(connection: Connection, one: Filter) -> None:
    head = one.name.partition(".")[0]
    if one.name == "study":
        _study_row(connection, one.value)
    elif head in ("spec", "outcome"):
        having = select(RUNS.c.id).where(has_field(one.name, connection.dialect.name))
        if connection.scalar(having.limit(1)) is None and not _may_come(connection, head):
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
        DamagedIndexError: it is not.
    """
    text, run = row.pop("outcome"), row["id"]
    _typed(row, engine.url)
    if not _is_id(run) or row["status"] not in STATUSES:
        raise damaged(engine.url, f"run {run!r} is {row['status']!r}")
    if not isinstance(text, str) or outcome_checksum(text) != row["outcome_checksum"]:
        raise damaged(engine.url, f"the outcome of run {run} is not what was written")
    return {**row, "outcome": json.loads(text)}


def _matches(status: str, filters: Sequence[Filter]) -> bool:
    return all((status == one.value) == (one.sign == "=") for one in filters if one.name == "status")


def study_points(
    engine: Engine, study: str
) -> tuple[dict[str, Any], list[tuple[int, str, str, dict[str, Any]]], list[str]]:
    """A study's row; place, run, status and outcome of each of its points; the versions of the code of its runs.

    Raises:
        RecordError: there is no such study.
    """
    with checked(engine) as connection:
        study_row = _typed(_study_row(connection, study), engine.url)
        of_study = select(POINTS.c.place, POINTS.c.run).where(POINTS.c.study == study)
        places = [(place, run) for place, run in connection.execute(of_study.order_by(POINTS.c.place))]
        members = select(POINTS.c.run).where(POINTS.c.study == study)
        with _streamed(connection, _WITH_OUTCOMES.where(RUNS.c.id.in_(members))) as rows:
            runs = {row["id"]: row for row in (_sound(one._asdict(), engine) for one in rows)}
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


def study_names(engine: Engine) -> list[str]:
    """The names of the studies in the index, sorted."""
    with checked(engine) as connection:
        return list(connection.scalars(select(STUDIES.c.name).order_by(STUDIES.c.name)))


def study_statuses(engine: Engine) -> dict[str, dict[str, int]]:
    """How many runs of every study have each status, according to the index."""
    joined = STUDIES.outerjoin(POINTS, POINTS.c.study == STUDIES.c.name).outerjoin(
        RUNS, RUNS.c.id == POINTS.c.run
    )
    runs = func.count(func.distinct(RUNS.c.id))
    chosen = select(STUDIES.c.name, RUNS.c.status, runs.label("runs")).select_from(joined)
    found: dict[str, dict[str, int]] = {}
    with checked(engine) as connection:
        for row in connection.execute(
            chosen.group_by(STUDIES.c.name, RUNS.c.status).order_by(STUDIES.c.name)
        ):
            statuses = found.setdefault(row.name, {})
            if row.status is not None:
                statuses[row.status] = row.runs
    return found
