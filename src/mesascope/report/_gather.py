"""Finding the records of a report."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.records import (
    ALONG_FORMAT,
    CERTIFICATE_FORMAT,
    CLAIM_FORMAT,
    IDENTIFICATION_FORMAT,
    CertificateFile,
    RecordError,
    RunDirectory,
    RunRow,
    checkpoint_files,
    known_keys,
    open_store,
    parse_json,
    read_along,
    read_identification,
    read_json_text,
    run_directories,
    without_passwords,
)

from ._along import ALONG, along_figure
from ._identification import RECORD, identification_figures
from ._material import Gathering, Material
from ._study_figures import run_figures, study_figures
from ._training import add_training

if TYPE_CHECKING:
    from mesascope.records import Store

Where = str | os.PathLike[str]


def gather(
    what: Sequence[str],
    results: Where = "results",
    store: Where | None = None,
    index: str | None = None,
) -> Material:
    """Find the requested records.

    Args:
        what: files and folders that hold records; papers and claims, looked up in `results`; names of studies and ids of
            runs (or how they begin), looked up in `store`. Nothing: all that is in `results` and in `store`.
        results: folder of run directories of `reproduce`, or one of them.
        store: folder of a store of runs, or the URL of its index.
        index: database of the store's index, if it is not its own.

    Raises:
        RecordError: something is not found, may not be read, or is not a record; the message says what, where it was looked
            for, and the fix.
    """
    found = Gathering()
    try:
        if not what:
            _add_everything(found, Path(results), store, index)
        for one in what:
            _add(found, one, Path(results), store, index)
        return found.material()
    except OSError as error:  # of folders; an error of a file names the file itself
        raise RecordError(
            f"{error.filename}: cannot be read ({error.strerror}); check its name and permissions, or leave it out"
        ) from error


def _add_everything(found: Gathering, results: Path, store: Where | None, index: str | None) -> None:
    runs = list(run_directories(results))
    if not runs and store is None:
        raise RecordError(
            f"nothing to report: there are no records in {results}; name files or folders with records, "
            "or run `mesascope reproduce` first"
        )
    for run in runs:
        found.claims.take_all(run)
    if store is not None:
        _add_store(found, store, index)


def _add(found: Gathering, what: str, results: Path, store: Where | None, index: str | None) -> None:
    """Add the records that `what` names: a path with records first, then a paper or claim, then a study or run."""
    if _add_path(found, Path(what)):
        return
    if re.fullmatch(r"[a-z0-9._-]+(/[a-z0-9._-]+)?", what):
        if any([found.claims.take_all(run, what) for run in run_directories(results)]):
            return
        if store is not None and _add_from_store(found, what, store, index):
            return
    raise RecordError(_not_found(what, results, store))


def _not_found(what: str, results: Path, store: Where | None) -> str:
    if Path(what).exists():
        return (
            f"{what} holds no records; name a folder of `reproduce`, `train`, `identify --figures` or `sweep`, "
            "or a certificate"
        )
    if what.partition("/")[0] in known_keys():
        return f"no records of {what} in {results}; run `mesascope reproduce {what}` first, or name its --out with --results"
    if store is None:
        return f"no file, paper or claim {what!r}; studies and runs need --store DIR"
    searched = f"{without_passwords(str(store))} and {results}"
    return f"no file, paper, study or run {what!r}; {searched} were searched: `mesascope runs list` shows ids"


# Paths: a new kind of record is one line of the tables, its kind in `KINDS`, and its template in `page`.


def _add_path(found: Gathering, path: Path) -> bool:
    """Add the records at a path; returns whether there are any."""
    if path.is_file():
        reader = _FILES.get(_format(path))
        if reader is None:
            raise RecordError(
                f"{path} is not a record of mesascope; name a claim's record, a certificate, an identification or a folder "
                "of runs"
            )
        reader(found, path)
        return True
    for holding, add in _FOLDERS:
        if folders := list(holding(path)):
            for folder in folders:
                add(found, folder)
            return True
    return False


def _format(file: Path) -> str:
    """The format that a file names, "" if it names none."""
    try:
        document = parse_json(read_json_text(file))
    except (OSError, ValueError):
        return ""
    return str(document.get("format")) if isinstance(document, dict) else ""


def _add_claim(found: Gathering, file: Path) -> None:
    paper = file.absolute().parent
    run = RunDirectory(paper.parent.parent)
    found.claims.take(run, run.read_claim(f"{paper.name}/{file.name.removesuffix('.json')}"))


def _add_identification(found: Gathering, file: Path) -> None:
    record = read_identification(file)
    figures = identification_figures(record) if record.curves is not None else {}
    found.add("identification", file.parent.name, record, tuple(figures.items()))


def _add_along(found: Gathering, file: Path) -> None:
    record = read_along(file)
    found.add("identification", file.parent.name, record, (("along", along_figure(record)),))


_IDENTIFICATIONS = {RECORD: _add_identification, ALONG: _add_along}


def _identifications(folder: Path) -> list[Path]:
    return [folder / name for name in _IDENTIFICATIONS if (folder / name).is_file()]


def _stores(folder: Path) -> Iterable[Path]:
    return [folder] if (folder / "store.json").exists() else []


def _trainings(folder: Path) -> Iterable[Path]:
    return [folder] if checkpoint_files(folder) else []


_FILES: dict[str, Callable[[Gathering, Path], None]] = {
    CLAIM_FORMAT: _add_claim,
    CERTIFICATE_FORMAT: lambda found, file: found.add("certificate", file.name, CertificateFile(file).record),
    IDENTIFICATION_FORMAT: _add_identification,
    ALONG_FORMAT: _add_along,
}
"""Format of a file → what adds its record."""
_FOLDERS: tuple[tuple[Callable[[Path], Iterable[Any]], Callable[[Gathering, Any], object]], ...] = (
    (_stores, lambda found, folder: _add_store(found, folder)),
    (run_directories, lambda found, run: found.claims.take_all(run)),
    (_trainings, add_training),
    (_identifications, lambda found, file: _IDENTIFICATIONS[file.name](found, file)),
)
"""How to find folders of each format below a path, and how to add their records; the first format that is found counts."""


# Stores


def _add_store(found: Gathering, where: Where, index: str | None = None) -> None:
    """Add all studies of a store, then the runs that no study has.

    Raises:
        RecordError: it cannot be opened, or holds nothing.
    """
    with open_store(where, index) as store:
        studies = store.folders.studies()
        found.problems += store.folders.misplaced_studies()
        for name in studies:
            _add_study(found, store, name)
        in_studies = found.studied()
        rows = [row for row in store.rows() if row.id not in in_studies]
        for row in rows:
            _add_run(found, store, row)
        if not rows and not studies:
            raise RecordError(f"{store.folders.root} holds no runs yet; `mesascope sweep` computes some")


def _add_from_store(found: Gathering, what: str, where: Where, index: str | None) -> bool:
    """Add a study by its name, or a run by the beginning of its id; returns whether there is one."""
    with open_store(where, index) as store:
        if what in store.folders.studies():
            _add_study(found, store, what)
            return True
        if not set(what) <= set("0123456789abcdef"):
            return False
        rows = store.rows([f"id={what}"], limit=2)
        if len(rows) > 1:
            raise RecordError(
                f"several runs of {store.folders.root} begin with {what!r}; give more of the id"
            )
        for row in rows:
            _add_run(found, store, row)
        return bool(rows)


def _add_study(found: Gathering, store: "Store", name: str) -> None:
    try:
        record = store.folders.study(name)
    except RecordError as error:
        found.problems.append(str(error))
        return
    rows = {row.id: row for row in store.rows([f"study={name}"])}
    found.problems += [row.error or "" for row in rows.values() if row.status == "unreadable"]
    figures = study_figures(record, rows, store.folders, found.problems)
    found.add("study", name, record, figures, key=name, rows=rows)


def _add_run(found: Gathering, store: "Store", row: RunRow) -> None:
    try:
        record = store.folders.run(row.id)
    except RecordError as error:
        found.problems.append(str(error))
        return
    figures = run_figures(row, store.folders, found.problems)
    about = {name: getattr(record, name, None) for name in ("traceback", "provenance")}
    found.add("run", row.id[:12], row, figures, key=row.id, **about)
