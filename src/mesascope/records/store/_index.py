"""Reading and writing rows of the index, in a transaction of the caller."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from ._models import RUN_ID, STUDY_NAME, StudyRecord
from ._schema import OUTCOMES, PARTS, POINTS, RUNS, STUDIES
from ._tally import counted
from ._urls import damaged

_CHUNK = 500  # rows in one statement: SQLite takes 32 766 values


def put(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, or overwrite those that have their keys."""
    if not rows:
        return
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)
    keys = [column.name for column in table.primary_key]
    values = {
        column.name: insert.excluded[column.name] for column in table.columns if column.name not in keys
    }
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=values), list(rows))


def put_runs(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of runs, with their outcomes."""
    for chunk in chunks(rows):
        own = [{name: value for name, value in row.items() if name != "outcome"} for row in chunk]
        with counted(connection, RUNS, RUNS.c.id.in_([row["id"] for row in chunk])):
            put(connection, RUNS, own)
        put(connection, OUTCOMES, [{"run": row["id"], "outcome": row["outcome"]} for row in chunk])


def drop_runs(connection: Connection, runs: Sequence[str]) -> None:
    """Remove the rows of these runs, if they are there."""
    for chunk in chunks(sorted(runs)):
        these = RUNS.c.id.in_(chunk)
        with counted(connection, RUNS, these):
            connection.execute(delete(RUNS).where(these))


def put_study(connection: Connection, study: StudyRecord, written: int) -> None:
    """Write a study and its points in place of what had its name."""
    drop_study(connection, study.name)
    plain = study.model_dump(mode="json", include={"name", "kind", "spec", "axes"})
    sizes = [axis.size for axis in study.axes]
    points = [
        {"study": study.name, "place": _number(point.place, sizes), "run": point.run}
        for point in study.points
    ]
    with _counted_study(connection, study.name):
        put(connection, STUDIES, [{**plain, "written": written}])
        for chunk in chunks(points):
            connection.execute(POINTS.insert(), list(chunk))


def _number(place: Sequence[int], sizes: Sequence[int]) -> int:
    number = 0
    for at, size in zip(place, sizes, strict=True):
        number = number * size + at
    return number


def drop_study(connection: Connection, name: str) -> None:
    """Remove a study and its points."""
    with _counted_study(connection, name):
        connection.execute(delete(POINTS).where(POINTS.c.study == name))
        connection.execute(delete(STUDIES).where(STUDIES.c.name == name))


@contextmanager
def _counted_study(connection: Connection, name: str) -> Iterator[None]:
    with (
        counted(connection, STUDIES, STUDIES.c.name == name),
        counted(connection, POINTS, POINTS.c.study == name),
    ):
        yield


def get_parts(connection: Connection) -> dict[str, int]:
    """When each folder of runs was last changed, according to the index."""
    return times(connection, select(PARTS.c.part, PARTS.c.written), "[0-9a-f]{2}")


def get_studies(connection: Connection) -> dict[str, int]:
    """The names of the studies, with the times of their files."""
    return times(connection, select(STUDIES.c.name, STUDIES.c.written), STUDY_NAME)


def get_runs(connection: Connection) -> dict[str, int]:
    """All runs, with the marks of their records."""
    return times(connection, select(RUNS.c.id, RUNS.c.written), RUN_ID)


def ids_of_part(connection: Connection, part: str) -> set[str]:
    """The runs whose ids begin so."""
    chosen = select(RUNS.c.id, RUNS.c.written).where(RUNS.c.id >= part, RUNS.c.id < part + "g")
    return set(times(connection, chosen, RUN_ID))


def unfinished(connection: Connection) -> dict[str, int]:
    """The runs that are not done, with the marks of their records."""
    chosen = select(RUNS.c.id, RUNS.c.written).where(RUNS.c.status.in_(("planned", "failed", "unreadable")))
    return times(connection, chosen, RUN_ID)


def times(connection: Connection, chosen: Select[Any], form: str) -> dict[str, int]:
    """Names and times, as they were written.

    Raises:
        DamagedIndexError: a name is not of this form, or a time is not an integer: SQLite opens some damaged files.
    """
    found, is_name = {}, re.compile(form).fullmatch
    for name, written in connection.execute(chosen):
        if not (isinstance(name, str) and is_name(name) and isinstance(written, int)):
            raise damaged(
                connection.engine.url, f"it holds {name!r}, {written!r} in place of a name and a time"
            )
        found[name] = written
    return found


def chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Cut a sequence into pieces that one statement takes."""
    return (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))
