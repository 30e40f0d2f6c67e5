"""The material of a report: records with their figures."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mesascope.records import Figure, NewestClaims, known_keys

Figures = tuple[tuple[str, Figure], ...]
"""Figures by name, in their order."""

KINDS = {
    "claim": "claims",
    "study": "studies",
    "run": "runs",
    "training": "trainings",
    "identification": "identifications",
    "certificate": "certificates",
}
"""The kinds of entries in the order of a report, with their plurals, which are names of folders."""


@dataclass(frozen=True)
class Entry:
    """A record in a report.

    Attributes:
        kind: one of `KINDS`; also the name of its template.
        name: what it is called: the id of a claim (with the preset where there are several), the name of a study or file.
        anchor: of its part of the page.
        folder: of its figures.
        record: what was read: a `ClaimRecord`, `StudyRecord`, `RunRow`, `IdentificationRecord`, `CertificateRecord`, or the
            header of the last checkpoint of a training.
        figures: by name.
        more: what else its template shows: `rows` of a study by id; `traceback`, `provenance` of a run; `spec`, `provenance`
            of a training.
    """

    kind: str
    name: str
    anchor: str
    folder: str
    record: Any
    figures: Figures = ()
    more: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def title(self) -> str:
        """Kind and name, for the contents."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Material:
    """Everything that one report shows.

    Attributes:
        entries: by kind, claims by paper in the order of `references.bib`.
        problems: one line for every record that was asked for and cannot be read.
    """

    entries: tuple[Entry, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, kind: str) -> list[Entry]:
        """The entries of one kind."""
        return [entry for entry in self.entries if entry.kind == kind]

    @property
    def figures(self) -> Iterator[tuple[str, Figure]]:
        """All figures, by distinct names for files and for elements of a page."""
        for entry in self.entries:
            for name, figure in entry.figures:
                yield f"{entry.folder}/{name}", figure


class Gathering:
    """Collects the records of a report.

    Attributes:
        claims: the newest checks of claims.
        problems: what was found and cannot be read.
    """

    def __init__(self) -> None:
        self.claims = NewestClaims()
        self.problems: list[str] = []
        self._entries: dict[tuple[str, str], Entry] = {}

    def add(
        self, kind: str, name: str, record: Any, figures: Figures = (), *, key: str | None = None, **more: Any
    ) -> None:
        """Add a record that is not a claim.

        Args:
            kind: one of `KINDS`.
            name: what it is called.
            record: what was read.
            figures: by name.
            key: distinguishes it from all others of its kind: a second one takes its place. By default its number.
            **more: what else its template shows.
        """
        key = key or str(sum(other == kind for other, _ in self._entries) + 1)
        folder = f"{KINDS[kind]}/{name if kind == 'run' else key}"
        self._entries[kind, key] = Entry(kind, name, f"{kind}-{key}", folder, record, figures, more)

    def studied(self) -> set[str]:
        """The ids of the runs of all studies."""
        return {
            run for (kind, _), entry in self._entries.items() if kind == "study" for run in entry.record.runs
        }

    def material(self) -> Material:
        """All that was found."""
        entries = [
            *self._claims(),
            *sorted(self._entries.values(), key=lambda entry: [*KINDS].index(entry.kind)),
        ]
        return Material(tuple(entries), tuple(dict.fromkeys([*self.claims.problems, *self.problems])))

    def _claims(self) -> list[Entry]:
        places = {key: place for place, key in enumerate(known_keys())}
        entries = []
        checks = self.claims.all()
        for check in checks:
            record = check.record
            several = sum(other.record.id == record.id for other in checks) > 1
            figures, problems = check.figures()
            self.problems += problems
            name = f"{record.id} ({record.preset})" if several else record.id
            anchor = f"{record.id}/{record.preset}" if several else record.id
            folder = re.sub(r"[^a-z0-9_-]+", "-", (record.preset or "claims").lower())  # a safe name
            entries.append(Entry("claim", name, anchor, folder, record, figures))

        def order(entry: Entry) -> tuple[int, str, str, str]:
            paper, _, name = entry.record.id.partition("/")
            return places.get(paper, len(places)), paper, name, entry.record.preset or ""

        return sorted(entries, key=order)
