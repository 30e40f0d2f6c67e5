"""Claims with the records of their checks, and stores of runs: what the lab was given to show."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from mesascope.records import (
    Checked,
    ClaimRecord,
    Figure,
    NewestClaims,
    RecordError,
    run_directories,
    shipped_pictures,
)
from mesascope.report import Material, gather

NOT_CHECKED = "not checked"
"""The outcome where there is no record."""


class Shelved(NamedTuple):
    """A claim, and its last checks: one for each preset, the newest first; none if it was never checked.

    `evidence` and `setting` are those of the small preset; `insight` is a text where the claim says what no paper does, else
    empty.
    """

    id: str
    title: str
    statement: str
    source: str
    origin: str
    evidence: str
    criterion: str
    setting: dict[str, Any]
    insight: str
    checks: tuple[Checked, ...]

    @property
    def paper(self) -> str:
        """Bib key of its paper."""
        return self.id.partition("/")[0]

    @property
    def record(self) -> ClaimRecord | None:
        """Of the last check."""
        return self.checks[0].record if self.checks else None

    @property
    def outcome(self) -> str:
        """Of the last check."""
        return self.record.outcome if self.record else NOT_CHECKED

    def figures(self) -> tuple[tuple[str, Figure], ...]:
        """Names and traces of the figures of the last check that has some; those that cannot be read are left out."""
        return next((found for check in self.checks if (found := check.figures()[0])), ())

    def pictures(self) -> tuple[str, ...]:
        """Small pictures of its figures from the package, as HTML with the words that stand for them."""
        return tuple(map(_as_html, shipped_pictures(self.id)))


def _as_html(file: Path) -> str:
    with Image.open(file) as picture:
        picture.load()  # its words may follow its pixels
        words, (width, height) = picture.info["Description"], picture.size
    content = b64encode(file.read_bytes()).decode()
    return (
        f'<img src="data:image/png;base64,{content}" alt="{escape(words)}" width="{width}" height="{height}">'
    )


class Shelf(NamedTuple):
    """Everything that can be browsed.

    Attributes:
        claims: every claim of every paper.
        stores: folders of stores of runs.
        problems: one line for everything that cannot be read.
    """

    claims: tuple[Shelved, ...]
    stores: tuple[str, ...]
    problems: tuple[str, ...]


def shelve(claims: list[dict[str, Any]], folders: list[Path], own: Path) -> Shelf:
    """Return every claim with its checks, wherever they are in the folders, and which of these are stores.

    Args:
        claims: what the papers claim.
        folders: of `reproduce`, folders of these, or stores.
        own: folder of checks of the lab itself; the first of them creates it.
    """
    newest = NewestClaims()
    stores: list[str] = []
    problems: list[str] = []
    for folder in (own, *folders):
        try:
            if (folder / "store.json").exists():
                stores.append(str(folder))
                continue
            if folder != own and not folder.is_dir():
                problems.append(f"{folder} no longer exists")
            for run in run_directories(folder):
                newest.take_all(run)
        except OSError as error:
            problems.append(f"{folder} cannot be read: {error.strerror or error}")
    checks: dict[str, list[Checked]] = {}
    for one in sorted(newest.all(), key=_freshness, reverse=True):
        checks.setdefault(one.record.id, []).append(one)
    shelved = (Shelved(**claim, checks=tuple(checks.get(claim["id"], ()))) for claim in claims)
    return Shelf(tuple(shelved), tuple(stores), (*problems, *newest.problems))


def read_store(folder: str) -> tuple[Material, tuple[str, ...]]:
    """Return studies and runs of a store with their figures, and one line for everything that cannot be read."""
    try:
        material = gather([folder])
    except (RecordError, OSError) as error:
        return Material(), (str(error),)
    return material, material.problems


def _freshness(checked: Checked) -> tuple[bool, str]:
    """Checks that raised count less than all others."""
    return not checked.record.failed, checked.record.provenance.created
