"""The report: one HTML file, and the same figures for LaTeX."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mesascope.core import Progress
from mesascope.records import RecordError, prepare_file, write_text
from mesascope.specs import extra

from ._gather import gather
from ._latex import write_latex
from ._material import KINDS


@dataclass(frozen=True)
class WrittenReport:
    """The files of a report.

    Attributes:
        file: the HTML file.
        latex: the folder for LaTeX; None where none was asked for.
        outcomes: how many claims have which outcome.
        studies, runs, trainings, identifications, certificates: how many there are.
        figures: how many there are.
        problems: one line for every record that cannot be read, and every figure that cannot be drawn; they are missing.
    """

    file: Path
    latex: Path | None
    outcomes: dict[str, int]
    studies: int
    runs: int
    trainings: int
    identifications: int
    certificates: int
    figures: int
    problems: tuple[str, ...]


def write_report(
    *what: str,
    out: str | os.PathLike[str],
    latex: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    store: str | os.PathLike[str] | None = None,
    index: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> WrittenReport:
    """Show stored records as one static HTML file; nothing is computed.

    The file needs no network and no server. It begins with the outcomes, then shows claim by claim what was measured beside
    what is expected, with figures, settings and provenance; studies, runs, identifications and certificates follow.

    Args:
        *what: files and folders that hold records; papers such as `zheng2024` and claims, looked up in `results`; names of
            studies and ids of runs, looked up in `store`. Without any, all of `results` and of `store`.
        out: the HTML file, written as a whole.
        latex: folder for the figures as PDF at the widths of a column and a page of a two-column paper, `figures.tex` with
            their captions, and `references.bib` with what they cite.
        results: folder of run directories of `reproduce`, or one of them.
        store: folder of a store of runs, or the URL of its index.
        index: database of the store's index, if it is not its own.
        progress: called before the records are read, and before every figure that is drawn for LaTeX.

    Returns:
        What was written, and what could not be read.

    Raises:
        RecordError: something is not found, is not a record, or cannot be written.
    """
    with extra("lab"):
        from .page import page, without_undrawable

    file = prepare_file(
        out, "an HTML page", lambda first: first.lstrip().lower().startswith(b"<!doctype html")
    )
    if latex is not None and not os.fspath(latex).strip():
        raise RecordError("the folder for LaTeX has an empty name; give one")
    report = progress or (lambda _: None)
    report(Progress(0, unit="figures", stage="reading records"))
    material = without_undrawable(gather(what, results, store, index))
    if latex is not None:
        undrawn = write_latex(latex, material, report)
        material = replace(material, problems=(*material.problems, *undrawn))
    created = datetime.now(UTC).isoformat(timespec="seconds")
    write_text(file, page(material, _title(what), created))
    return WrittenReport(
        file,
        None if latex is None else Path(latex),
        dict(Counter(entry.record.outcome for entry in material.of("claim"))),
        **{plural: len(material.of(kind)) for kind, plural in KINDS.items() if kind != "claim"},
        figures=len(list(material.figures)),
        problems=material.problems,
    )


def _title(what: Sequence[str]) -> str:
    names = [Path(one).name for one in what]
    return f"Report: {', '.join(names)}" if 0 < len(names) <= 3 else "Report"
