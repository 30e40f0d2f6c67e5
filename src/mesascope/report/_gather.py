"""Finding the records of a report."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from mesascope.records import (
    CLAIM_FORMAT,
    CertificateFile,
    RecordError,
    RunDirectory,
    known_keys,
    read_identification,
    run_directories,
)

from ._gather_store import from_store, whole_store
from ._identification import RECORD as IDENTIFICATION
from ._identification import identification_figures
from ._material import CertificateEntry, Gathering, IdentificationEntry, Material
from ._training import read_training

_CERTIFICATE, _IDENTIFICATION = (f"mesascope.{kind}/1" for kind in ("certificate", "identification"))


def gather(
    what: Sequence[str],
    results: str | os.PathLike[str] = "results",
    store: str | os.PathLike[str] | None = None,
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
        RecordError: something is not found, may not be read, or is no record; the message says what, where it was looked for,
            and the fix.
    """
    found = Gathering()
    try:
        if not what:
            _everything(found, Path(results), store, index)
        for one in what:
            _one(found, one, Path(results), store, index)
        return found.material()
    except OSError as error:  # of folders; files of records tell by themselves
        raise RecordError(
            f"{error.filename}: cannot be read ({error.strerror}); check its name and permissions, or leave it out"
        ) from error


def _everything(
    found: Gathering, results: Path, store: str | os.PathLike[str] | None, index: str | None
) -> None:
    runs = list(run_directories(results))
    if not runs and store is None:
        raise RecordError(
            f"nothing to report: there are no records in {results}; name files or folders with records, "
            "or run `mesascope reproduce` first"
        )
    for run in runs:
        found.claims.take_all(run)
    if store is not None:
        whole_store(found, store, index)


def _one(
    found: Gathering, what: str, results: Path, store: str | os.PathLike[str] | None, index: str | None
) -> None:
    """Add the records that `what` names: a path with records first, then a paper or claim, then a study or run."""
    if _read(found, Path(what)):
        return
    if re.fullmatch(r"[a-z0-9._-]+(/[a-z0-9._-]+)?", what):
        if any([found.claims.take_all(run, what) for run in run_directories(results)]):
            return
        if store is not None and from_store(found, what, store, index):
            return
    raise RecordError(_not_found(what, results, store))


def _not_found(what: str, results: Path, store: str | os.PathLike[str] | None) -> str:
    if Path(what).exists():
        return (
            f"{what} holds no records; name a folder of `reproduce`, `train`, `identify --figures` or `sweep`, "
            "or a certificate"
        )
    if what.partition("/")[0] in known_keys():
        return f"no records of {what} in {results}; run `mesascope reproduce {what}` first, or name its --out with --results"
    if store is None:
        return f"no file, paper or claim {what!r}; studies and runs need --store DIR"
    return f"no file, paper, study or run {what!r}; {store} and {results} were searched: `mesascope runs list` shows ids"


# Paths


def _read(found: Gathering, path: Path) -> bool:
    """Add the records at a path; returns whether there are any."""
    if path.is_file():
        _read_file(found, path)
    elif (path / "store.json").exists():
        whole_store(found, path, None)
    elif runs := list(run_directories(path)):
        for run in runs:
            found.claims.take_all(run)
    elif any(path.glob("step-*.checkpoint")):
        found.trainings.append(read_training(path))
    elif (path / IDENTIFICATION).exists():
        _identification(found, path / IDENTIFICATION)
    else:
        return False
    return True


def _read_file(found: Gathering, path: Path) -> None:
    """Add the record in a file, by the format that the file names."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        document = None
    kind = document.get("format") if isinstance(document, dict) else None
    if kind == _CERTIFICATE:
        found.certificates.append(CertificateEntry(path, CertificateFile(path).record))
    elif kind == _IDENTIFICATION:
        _identification(found, path)
    elif kind == CLAIM_FORMAT:
        paper = path.absolute().parent
        run = RunDirectory(paper.parent.parent)
        found.claims.take(run, run.read_claim(f"{paper.name}/{path.name.removesuffix('.json')}"))
    else:
        raise RecordError(
            f"{path} is no record of mesascope; name a claim's record, a certificate, an identification or a folder of runs"
        )


def _identification(found: Gathering, path: Path) -> None:
    record = read_identification(path)
    figures = identification_figures(record) if record.curves is not None else {}
    found.identifications.append(IdentificationEntry(path, record, tuple(figures.items())))
