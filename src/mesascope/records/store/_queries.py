"""Questions to the index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, Select, func, select

from mesascope.records._files import RecordError

from ._engine import reading
from ._filters import Filter, condition, read_filters
from ._folders import RunFolders
from ._rows import RunRow
from ._schema import OUTCOMES, POINTS, RUNS, STUDIES

_COLUMNS = [column for column in RUNS.columns if column.name not in ("brief", "written")]


def find(engine: Engine, folders: RunFolders, filters: Sequence[str], limit: int | None) -> list[RunRow]:
    """The runs that all the filters hold for, those that ended last first."""
    read = read_filters(filters)
    joined = select(*_COLUMNS, OUTCOMES.c.outcome).join_from(RUNS, OUTCOMES, OUTCOMES.c.run == RUNS.c.id)
    chosen = _where(joined, read, engine).order_by(RUNS.c.ended.desc(), RUNS.c.id.desc())
    limit = None if limit is None else min(limit, 2**31)  # databases take no more than 64 bits
    if limit is not None and not any(map(_by_locks, read)):
        chosen = chosen.limit(limit)
    with reading(engine) as connection, _streamed(connection, chosen) as rows:
        return list(islice(_alive(rows, folders, read), limit))


def _streamed(connection: Connection, chosen: Select[Any]) -> CursorResult[Any]:
    """The rows as they are asked for, not all at once; close it."""
    return connection.execution_options(yield_per=500).execute(chosen)


def count(engine: Engine, folders: RunFolders, filters: Sequence[str]) -> int:
    """The number of runs that all the filters hold for."""
    read = read_filters(filters)
    with reading(engine) as connection:
        if not any(map(_by_locks, read)):
            chosen = _where(select(func.count()).select_from(RUNS), read, engine)
            return int(connection.execute(chosen).scalar_one())
        each = connection.execute(_where(select(RUNS.c.id, RUNS.c.state), read, engine))
        return sum(_is_meant(_state(folders, run, state), read) for run, state in each)


def _where(chosen: Select[Any], filters: Sequence[Filter], engine: Engine) -> Select[Any]:
    """The conditions that the index can judge: of planned and running runs it knows only that they have not ended."""
    for one in filters:
        if one.sign == "=" or not _by_locks(one):
            chosen = chosen.where(condition(one, engine.dialect.name))
    return chosen


def _by_locks(one: Filter) -> bool:
    """Whether the locks of the folders decide: to the index, what has not ended is planned."""
    return one.name == "state" and one.value in ("planned", "running")


def _alive(rows: Any, folders: RunFolders, filters: Sequence[Filter]) -> Iterator[RunRow]:
    """The rows, with `running` for what is being computed now; those whose state is not asked for are left out."""
    for row in rows:
        state = _state(folders, row.id, row.state)
        if _is_meant(state, filters):
            yield RunRow(**{**row._asdict(), "state": state})


def _state(folders: RunFolders, run: str, state: str) -> str:
    """What the index knows of a state, and, of what has not ended, the lock in its folder."""
    # Whether there is the file of a lock is asked first: of a hundred thousand planned runs, few have one.
    lock = f"{folders.root}/runs/{run[:2]}/{run}/.run.lock"
    return "running" if state == "planned" and os.access(lock, os.F_OK) and folders.running(run) else state


def _is_meant(state: str, filters: Sequence[Filter]) -> bool:
    return all((state == one.value) == (one.sign == "=") for one in filters if one.name == "state")


def study_points(
    engine: Engine, study: str
) -> tuple[dict[str, Any], list[tuple[int, str, str, dict[str, Any]]], list[str]]:
    """A study's row; place, run, state and outcome of each of its points; the versions of the code of its runs.

    Raises:
        RecordError: there is no such study.
    """
    with reading(engine) as connection:
        row = connection.execute(select(STUDIES).where(STUDIES.c.name == study)).mappings().first()
        if row is None:
            known = ", ".join(connection.scalars(select(STUDIES.c.name).order_by(STUDIES.c.name))) or "none"
            raise RecordError(f"no study {study!r} in this store; it has: {known}")
        joined = POINTS.join(RUNS, RUNS.c.id == POINTS.c.run).join(OUTCOMES, OUTCOMES.c.run == RUNS.c.id)
        columns = (POINTS.c.place, POINTS.c.run, RUNS.c.state, OUTCOMES.c.outcome, RUNS.c.code)
        chosen = select(*columns).select_from(joined)
        found = connection.execute(chosen.where(POINTS.c.study == study).order_by(POINTS.c.place)).all()
    return (
        dict(row),
        [(one.place, one.run, one.state, one.outcome) for one in found],
        sorted({one.code for one in found}),
    )


def study_states(engine: Engine) -> dict[str, dict[str, int]]:
    """How many runs of every study are in each state, as the index knows it."""
    joined = STUDIES.outerjoin(POINTS, POINTS.c.study == STUDIES.c.name).outerjoin(
        RUNS, RUNS.c.id == POINTS.c.run
    )
    runs = func.count(func.distinct(RUNS.c.id))
    chosen = select(STUDIES.c.name, RUNS.c.state, runs.label("runs")).select_from(joined)
    found: dict[str, dict[str, int]] = {}
    with reading(engine) as connection:
        for row in connection.execute(chosen.group_by(STUDIES.c.name, RUNS.c.state).order_by(STUDIES.c.name)):
            states = found.setdefault(row.name, {})
            if row.state is not None:
                states[row.state] = row.runs
    return found
