"""Bringing the index up to date with the folders.

The folders of runs are read while the index is locked for writing, so that no process overwrites a newer row with an older one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from sqlalchemy import Connection, Engine, select

from mesascope.records._files import RecordError, remove_leftovers
from mesascope.records._sealed import none_if_damaged

from ._engine import check, reading, writing
from ._folders import RunFolders
from ._index import (
    chunks,
    drop_runs,
    drop_study,
    get_parts,
    get_runs,
    get_studies,
    ids_of_part,
    put,
    put_runs,
    put_study,
    unfinished,
)
from ._paths import LARGEST_INTEGER, empty_trash, study_file
from ._rows import has_changed, record_mark, row_of
from ._schema import OUTCOMES, PARTS, RUNS
from ._tally import checked

# A second change within the resolution of a folder's time would not show; after this long it does.
_RESTED = 2 * 10**9  # ns
# An empty folder younger than this may be about to get its plan.
_ABANDONED = 60 * 10**9  # ns


def enter(engine: Engine, folders: RunFolders, runs: Iterable[str]) -> None:
    """Bring the rows of these runs up to date: written where there is a folder, removed where there is none."""
    for chunk in chunks(sorted(set(runs))):
        with writing(engine) as connection:
            _enter(connection, folders, chunk)


def _enter(connection: Connection, folders: RunFolders, runs: Iterable[str]) -> None:
    rows = {run: row_of(folders, run) for run in runs}
    put_runs(connection, [row for row in rows.values() if row is not None])
    drop_runs(connection, [run for run, row in rows.items() if row is None])


def refresh(engine: Engine, folders: RunFolders) -> None:
    """Enter what has changed in the folders since the last refresh.

    It looks at the times of the 256 folders that hold runs, of the records of runs that are not done, and of studies. A record
    of a done run that was changed by hand is noticed by `confirm`.
    """
    with reading(engine) as connection:
        parts, waiting, studies = get_parts(connection), unfinished(connection), get_studies(connection)
    for part in sorted({*folders.parts(), *parts}):
        if parts.get(part) != _time(f"{folders.root}/runs/{part}"):
            _enter_part(engine, folders, part, everything=False)
    enter(engine, folders, (run for run, written in waiting.items() if record_mark(folders, run) != written))
    for name in sorted({*folders.studies(), *studies}):
        if studies.get(name) != _time(study_file(folders.root, name)):
            _enter_study(engine, folders, name)


def confirm(engine: Engine, folders: RunFolders, found: Iterable[tuple[str, int]]) -> bool:
    """Read the records again that have changed since the index was made from them.

    Args:
        engine: of the index.
        folders: of the store.
        found: runs, with the marks of their records in the index.

    Returns:
        Whether there were any.
    """
    changed = [run for run, written in found if has_changed(folders, run, written)]
    enter(engine, folders, changed)
    return bool(changed)


def rebuild(engine: Engine, folders: RunFolders) -> None:
    """Write every row again from the folders, and clean up after processes that were killed.

    Raises:
        DamagedIndexError: the file of the index is damaged anywhere.
    """
    check(engine)
    with checked(engine):
        pass
    clean(folders)
    with reading(engine) as connection:
        parts, studies = get_parts(connection), get_studies(connection)
        parts |= dict.fromkeys((run[:2] for run in get_runs(connection)), 0)
    for part in sorted({*folders.parts(), *parts}):
        _enter_part(engine, folders, part, everything=True)
    for name in sorted({*folders.studies(), *studies}):
        _enter_study(engine, folders, name)


def clean(folders: RunFolders) -> None:
    """Remove what killed processes have left: temporary files, things thrown away, folders without a plan."""
    remove_leftovers(folders.root)
    empty_trash(folders.root)
    for run in folders.ids():
        folder = folders.folder(run)
        with suppress(
            OSError, RecordError
        ):  # it is not empty, or belongs to another user: `problems` reports it
            if not folders.is_planned(run) and time.time_ns() - _time(folder) > _ABANDONED:
                os.rmdir(folder)


def differences(engine: Engine, folders: RunFolders) -> list[str]:
    """One line for every way in which the index is not what the folders say."""
    try:
        check(engine)
        with reading(engine) as connection:
            get_runs(connection)  # refuses names that are no ids
    except RecordError as error:
        return [str(error)]
    found, known = [], set()
    with reading(engine) as connection:
        joined = RUNS.outerjoin(OUTCOMES, OUTCOMES.c.run == RUNS.c.id)
        chosen = select(RUNS, OUTCOMES.c.outcome).select_from(joined)
        for row in connection.execution_options(yield_per=500).execute(chosen).mappings():
            run = row["id"]
            known.add(run)
            # a record written since then is entered by the next command
            if row_of(folders, run) != dict(row) and not has_changed(folders, run, row["written"]):
                found.append(run)
    missing = [run for run in folders.ids() if run not in known and row_of(folders, run) is not None]
    fix, lines = "build it again: mesascope runs reindex", []
    if found:
        lines.append(f"the index differs from the folder of run {found[0]} ({len(found)} such); {fix}")
    if missing:
        lines.append(f"the index lacks run {missing[0]} ({len(missing)} such); {fix}")
    try:
        with checked(engine):
            return lines
    except RecordError as error:
        return lines or [str(error)]  # a changed row is told by its run, and changes the sums, too


def _enter_part(engine: Engine, folders: RunFolders, part: str, *, everything: bool) -> None:
    with writing(engine) as connection:
        written = _time(f"{folders.root}/runs/{part}")  # before the folder is read: later changes show
        there, known = set(folders.ids_of_part(part)), ids_of_part(connection, part)
        _enter(connection, folders, sorted(there | known if everything else there ^ known))
        rested = written and time.time_ns() - written > _RESTED
        put(connection, PARTS, [{"part": part, "written": written if rested else 0}])


def _enter_study(engine: Engine, folders: RunFolders, name: str) -> None:
    with writing(engine) as connection:
        written = _time(study_file(folders.root, name))
        study = none_if_damaged(lambda: folders.study(name))
        if study is None:  # removed, or damaged: `problems` reports it
            drop_study(connection, name)
        else:
            rested = time.time_ns() - written > _RESTED
            put_study(connection, study, written if rested else 0)


def enter_studies(engine: Engine, folders: RunFolders, names: Sequence[str]) -> None:
    """Bring the rows of these studies up to date with their files."""
    for name in names:
        _enter_study(engine, folders, name)


def _time(path: object) -> int:
    """When something was last changed, in nanoseconds; 0 where it is absent. Only ever compared for equality."""
    try:
        return os.stat(str(path)).st_mtime_ns & LARGEST_INTEGER
    except OSError:
        return 0
