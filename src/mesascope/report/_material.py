"""The material of a report: records with their figures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesascope.records import (
    CertificateRecord,
    ClaimRecord,
    Figure,
    IdentificationRecord,
    NewestClaims,
    Provenance,
    RunRow,
    StudyRecord,
    known_keys,
)

Figures = tuple[tuple[str, Figure], ...]
"""Figures by name, in their order."""


@dataclass(frozen=True)
class ClaimEntry:
    """A claim that was checked."""

    record: ClaimRecord
    figures: Figures


@dataclass(frozen=True)
class StudyEntry:
    """A study, and the rows of its runs in the index of the store, by id."""

    record: StudyRecord
    rows: dict[str, RunRow]
    figures: Figures


@dataclass(frozen=True)
class RunEntry:
    """A run of a store; without provenance where it has not ended."""

    row: RunRow
    traceback: str | None
    provenance: Provenance | None
    figures: Figures


@dataclass(frozen=True)
class TrainingEntry:
    """The folder of a training run: the header of its last checkpoint, and its specification if it has one."""

    folder: Path
    header: dict[str, Any]
    spec: dict[str, Any] | None
    figures: Figures


@dataclass(frozen=True)
class CertificateEntry:
    """A certificate and its file."""

    file: Path
    record: CertificateRecord


@dataclass(frozen=True)
class IdentificationEntry:
    """An identification and its file."""

    file: Path
    record: IdentificationRecord
    figures: Figures


@dataclass(frozen=True)
class Material:
    """Everything that one report shows, each kind in its order.

    Attributes:
        claims, studies, runs, trainings, identifications, certificates: the records.
        problems: one line for every record that was asked for and cannot be read.
    """

    claims: tuple[ClaimEntry, ...] = ()
    studies: tuple[StudyEntry, ...] = ()
    runs: tuple[RunEntry, ...] = ()
    trainings: tuple[TrainingEntry, ...] = ()
    identifications: tuple[IdentificationEntry, ...] = ()
    certificates: tuple[CertificateEntry, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def figures(self) -> Iterator[tuple[str, Figure]]:
        """All figures, by distinct names for files and for elements of a page."""
        for claim in self.claims:
            for name, figure in claim.figures:
                yield f"{_as_name(claim.record.preset or 'claims')}/{name}", figure
        for study in self.studies:
            for name, figure in study.figures:
                yield f"studies/{study.record.name}/{name}", figure
        for run in self.runs:
            for name, figure in run.figures:
                yield f"runs/{run.row.id[:12]}/{name}", figure
        for n, training in enumerate(self.trainings, start=1):
            for name, figure in training.figures:
                yield f"trainings/{n}/{name}", figure
        for n, one in enumerate(self.identifications, start=1):
            for name, figure in one.figures:
                yield f"identifications/{n}/{name}", figure


class Gathering:
    """Collects the records of a report.

    Attributes:
        claims, studies, runs, trainings, identifications, certificates: what was found.
        problems: what was found and cannot be read.
    """

    def __init__(self) -> None:
        self.claims = NewestClaims()
        self.studies: dict[str, StudyEntry] = {}
        self.runs: dict[str, RunEntry] = {}
        self.trainings: list[TrainingEntry] = []
        self.identifications: list[IdentificationEntry] = []
        self.certificates: list[CertificateEntry] = []
        self.problems: list[str] = []

    def material(self) -> Material:
        """All that was found; claims by paper, in the order of `references.bib`."""
        papers = {key: place for place, key in enumerate(known_keys())}

        def order(entry: ClaimEntry) -> tuple[int, str, str, str]:
            paper, _, name = entry.record.id.partition("/")
            return papers.get(paper, len(papers)), paper, name, entry.record.preset or ""

        claims = []
        for checked in self.claims.all():
            figures, problems = checked.figures()
            claims.append(ClaimEntry(checked.record, figures))
            self.problems += problems
        return Material(
            tuple(sorted(claims, key=order)),
            tuple(self.studies.values()),
            tuple(self.runs.values()),
            tuple(self.trainings),
            tuple(self.identifications),
            tuple(self.certificates),
            tuple(dict.fromkeys([*self.claims.problems, *self.problems])),
        )


def _as_name(text: str) -> str:
    """A text of a record as a safe name of a folder."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())
