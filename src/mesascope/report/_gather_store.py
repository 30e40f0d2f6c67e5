"""Studies and runs of a store, for a report."""

import os
from typing import TYPE_CHECKING

from mesascope.records import RecordError, RunRow, open_store

from ._material import Gathering, RunEntry, StudyEntry
from ._study_figures import run_figures, study_figures

if TYPE_CHECKING:
    from mesascope.records import Store

Where = str | os.PathLike[str]


def whole_store(found: Gathering, where: Where, index: str | None) -> None:
    """Add all studies of a store, then the runs that no study has.

    Raises:
        RecordError: it cannot be opened, or holds nothing.
    """
    with open_store(where, index) as store:
        for name in store.folders.studies():
            _study(found, store, name)
        in_studies = {run for study in found.studies.values() for run in study.record.runs}
        rows = [row for row in store.rows() if row.id not in in_studies]
        for row in rows:
            _run(found, store, row)
        if not rows and not store.folders.studies():
            raise RecordError(f"{where} holds no runs yet; `mesascope sweep` computes some")


def from_store(found: Gathering, what: str, where: Where, index: str | None) -> bool:
    """Add a study by its name, or a run by the beginning of its id; returns whether there is one."""
    with open_store(where, index) as store:
        if what in store.folders.studies():
            _study(found, store, what)
            return True
        if set(what) <= set("0123456789abcdef"):
            rows = store.rows([f"id={what}"], limit=2)
            if len(rows) > 1:
                raise RecordError(f"several runs of {where} begin with {what!r}; give more of the id")
            for row in rows:
                _run(found, store, row)
            return bool(rows)
    return False


def _study(found: Gathering, store: "Store", name: str) -> None:
    try:
        record = store.folders.study(name)
    except RecordError as error:
        found.problems.append(str(error))
        return
    rows = {row.id: row for row in store.rows([f"study={name}"])}
    found.studies[name] = StudyEntry(record, rows, study_figures(record, rows, store.folders))


def _run(found: Gathering, store: "Store", row: RunRow) -> None:
    record = store.folders.run(row.id)
    if record is None:
        found.runs[row.id] = RunEntry(row, None, None, ())
    else:
        figures = run_figures(row, store.folders)
        found.runs[row.id] = RunEntry(row, record.traceback, record.provenance, figures)
