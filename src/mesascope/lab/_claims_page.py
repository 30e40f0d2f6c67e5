"""The page of claims: all of them as a matrix; each opens in a sheet beside it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from urllib.parse import parse_qs, quote

from nicegui import events, run, ui

from mesascope.report import MatrixCell, MatrixRow, matrix, most_important_first

from ._claim_sheet import ClaimSheet
from ._frame import Frame
from ._session import Lab
from ._shelf import Shelf, Shelved, shelve
from ._store_list import list_store
from ._widgets import Work, heading

_STYLE, _SCRIPT = (
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("claims.css", "claims.js")
)
_HOW = (
    "Each cell is a claim that a program has checked. Its shape says how, its colour and sign say what was found. "
    "Choose a cell to read the claim; arrow keys move from cell to cell, Enter opens one."
)
FINDINGS, FINDINGS_ADDRESS = "What we found that the papers do not say", "/claims#found"
_GO_TO_FOUND = "if (location.hash === '#found') document.getElementById('found').scrollIntoView()"
_WIDE, _NARROW = 32, 12  # cells in a line that fit the page, and a phone


class ClaimsPage(Frame):
    """One window with the claims of all papers."""

    path = "/claims"

    def __init__(self, lab: Lab, query: str) -> None:
        super().__init__(lab)
        self._wanted = parse_qs(query).get("claim", [""])[0]
        self._shelf = Shelf((), (), ())
        ui.add_css(_STYLE)
        with ui.element("div").classes("lab-content lab-claims"):
            heading("Claims of papers, checked by computation").classes("text-h6", remove="text-subtitle2")
            ui.label(_HOW).classes("lab-caption")
            ui.link(FINDINGS, "#found")
            self._first = ui.switch("Contradicted and not reproduced first", on_change=self._draw)
            self.loading = Work(self.session, "claims")
            self._matrices = {
                name: ui.html("", sanitize=False).classes(f"lab-matrix-{name}") for name in ("wide", "narrow")
            }
            self._found = ui.column().classes("w-full gap-1")
            self._stores = ui.column().classes("w-full gap-1")
        self._sheet = ClaimSheet(self.session, self._read, self._show_address)
        ui.on("lab_claim", self._open)

    async def begin(self, narrow: bool) -> None:
        """List the claims; open the one that the address names."""
        ui.run_javascript(_SCRIPT)
        known = await self.loading.compute("The claims could not be listed")
        if known is None:
            return
        self._known = known
        await self._read()
        self._list_findings()
        self._list_stores()
        if self._wanted:
            self._show(self._wanted)

    def redraw(self) -> None:
        """Draw the figures of the sheet again; the matrix follows the theme by itself."""
        self._sheet.redraw()

    async def _read(self) -> None:
        """Read the records and draw the matrix; say which of them cannot be read."""
        *folders, own = self.session.lab.records
        shelf = await run.io_bound(shelve, self._known, folders, own)
        if shelf is None:  # the server is ending
            return
        self._shelf = shelf
        self.loading.show_error("; ".join(shelf.problems) or None)
        self._draw()
        self._sheet.show_again(shelf.claims)

    def _draw(self) -> None:
        rows = [
            MatrixRow(paper, tuple(map(_cell, claims)))
            for paper, claims in groupby(self._shelf.claims, lambda one: one.paper)
        ]
        if self._first.value:
            rows = most_important_first(rows)
        shapes = {"wide": (_WIDE, False), "narrow": (_NARROW, True)}
        for name, (columns, stacked) in shapes.items():
            self._matrices[name].set_content(
                matrix(rows, columns=columns, stacked=stacked, alone=False, one_stop=True)
            )

    def _list_findings(self) -> None:
        with self._found:
            heading(FINDINGS).props("id=found")
            for one in self._shelf.claims:
                if one.insight:
                    ui.link(one.title, _address(one.id)).props["data-claim"] = one.id
        ui.run_javascript(_GO_TO_FOUND)

    def _list_stores(self) -> None:
        with self._stores:
            for store in self._shelf.stores:
                list_store(self.session, store)

    def _open(self, event: events.GenericEventArguments) -> None:
        self._show(str(event.args))

    def _show(self, id: str) -> None:
        one = next((one for one in self._shelf.claims if one.id == id), None)
        if one is None:
            self.loading.show_error(f"There is no claim {id!r}.")
            return
        self._sheet.show(one)

    def _show_address(self, id: str) -> None:
        ui.navigate.history.replace(_address(id) if id else self.path)


def _address(id: str) -> str:
    return f"{ClaimsPage.path}?claim={quote(id)}"


def _cell(one: Shelved) -> MatrixCell:
    evidence = one.record.evidence if one.record else one.evidence
    return MatrixCell(one.id, one.title, evidence, one.outcome, _address(one.id))
