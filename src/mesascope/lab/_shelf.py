"""Claims with the records of their checks, from the folders that the lab was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from mesascope.records import ClaimRecord, Figure, RunDirectory

_PRESETS = ("quick", "paper")


class Shelved(NamedTuple):
    """A claim, and the record of its last check with the run that it belongs to, if there is one."""

    id: str
    statement: str
    source: str
    origin: str
    record: ClaimRecord | None
    run: RunDirectory | None

    @property
    def paper(self) -> str:
        """Bib key of its paper."""
        return self.id.partition("/")[0]

    @property
    def verdict(self) -> str:
        """Of the record; "not checked" where there is none."""
        return self.record.verdict if self.record else "not checked"

    def figures(self) -> list[tuple[str, Figure]]:
        """Names and traces of its figures; those that cannot be read are left out."""
        found = []
        for file in self.record.files if self.record and self.run else ():
            section, _, name = file.partition("/")
            if section == "figures" and self.run:
                try:
                    found.append(
                        (name.removesuffix(".json"), self.run.read_figure(name.removesuffix(".json")))
                    )
                except ValueError:  # no record, or no name of one
                    continue
        return found


def shelve(claims: list[dict[str, Any]], folders: list[Path]) -> list[Shelved]:
    """Every claim beside its newest record: later folders count more, the paper's own sizes less than quick ones made later."""
    records: dict[str, tuple[ClaimRecord, RunDirectory]] = {}
    for folder in folders:
        for run in (RunDirectory(folder), *(RunDirectory(folder / preset) for preset in _PRESETS)):
            if run.path.is_dir():
                records |= {record.id: (record, run) for record in run.claims()}
    return [Shelved(**claim, **_found(records.get(claim["id"]))) for claim in claims]


def _found(pair: tuple[ClaimRecord, RunDirectory] | None) -> dict[str, Any]:
    record, run = pair or (None, None)
    return {"record": record, "run": run}
