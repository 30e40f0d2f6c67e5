"""One claim in full, beside the matrix: what it says, what was found, its figures, and a check of it now."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from nicegui import run, ui

from mesascope.records import SIGNS, Figure

from ._session import Session
from ._shelf import Shelved
from ._widgets import Work, draw_figures, heading, in_short, later, sentence
from ._words import typeset

_SIGNS = dict[str, str](SIGNS.items())
_STARTING = 5.0  # seconds until a process can begin
_SMALL = "As drawn for the record that comes with mesascope; a run here draws it anew, larger and with its numbers."
_NO_FIGURES = "No figures lie beside its record; a run draws those it has."


class ClaimSheet:
    """A sheet at the side that shows one claim at a time.

    Args:
        session: of the window.
        read: reads the records again, after a check.
        address: shows in the address which claim is open; "" for none.
    """

    def __init__(
        self, session: Session, read: Callable[[], Awaitable[None]], address: Callable[[str], None]
    ) -> None:
        self._session, self._read, self._address = session, read, address
        self._one: Shelved | None = None
        self._began: float | None = None
        self._expected = _STARTING
        session.watchers.append(self._refresh)
        self._dialog = ui.dialog().props("position=right full-height")
        self._dialog.on_value_change(self._turned)
        with self._dialog, ui.card().classes("lab-sheet"):
            with ui.row().classes("w-full items-start no-wrap gap-2"):
                self._title = sentence("").classes("grow lab-sheet-title").props("role=heading aria-level=2")
                close = ui.button(icon="close", on_click=self._dialog.close)
                close.props('flat dense round aria-label="close"')
            self._what = ui.column().classes("w-full gap-2")
            with ui.row().classes("w-full items-center gap-3"):
                self._button = ui.button("Run it now", on_click=self._run)
                self._button.props("no-caps unelevated data-act=rerun")
                self._cost = ui.label("").classes("text-caption lab-caption")
            self._bar = ui.linear_progress(0, show_value=False).props('aria-label="progress of the check"')
            self._bar.set_visibility(False)
            self.work = Work(session, "rerun")
            self._figures = ui.column().classes("w-full gap-2")
            self._record = ui.column().classes("w-full gap-2")

    def show(self, one: Shelved) -> None:
        """Open a claim."""
        self._one = one
        self._dialog.props["aria-label"] = one.title
        self._title.set_content(typeset(one.title))
        if self._began is None:
            self.work.show_error(None)
        took = _seconds(one)
        self._cost.set_text("" if took is None else f"small preset; took {took:.2g} s the last time")
        self._what.clear()
        with self._what:
            _what(one)
        self._record.clear()
        with self._record:
            _record(one)
        self._dialog.open()
        self.redraw()

    def redraw(self) -> None:
        """Draw the figures in the colours of the theme."""
        if self._one is not None:
            later(self._draw(self._one))

    async def _draw(self, one: Shelved) -> None:
        shown = await run.io_bound(_figures_of, one)
        if shown is None or one is not self._one:  # the server is ending, or another claim was opened
            return
        figures, pictures = shown
        self._figures.clear()
        with self._figures:
            draw_figures(figures, self._session.theme)
            for picture in pictures:
                ui.html(picture, sanitize=False).classes("lab-thumbnail").props('data-fact="picture"')
            if pictures:
                ui.label(_SMALL).classes("text-caption lab-caption")
            elif not figures and one.record is not None:
                ui.label(_NO_FIGURES).classes("lab-caption")

    def _turned(self, event: Any) -> None:
        self._address(self._one.id if event.value and self._one else "")
        if not event.value:
            self._one = None

    async def _run(self) -> None:
        one = self._one
        if one is None or self._began is not None:
            return
        self._began, self._expected = time.monotonic(), _STARTING + (_seconds(one) or 60.0)
        self._button.disable()
        self._bar.set_visibility(True)
        try:
            await self._check(one)
        finally:
            self._began = None
            self._button.enable()
            self._bar.set_visibility(False)

    async def _check(self, one: Shelved) -> None:
        failure, folder = f"{one.id} could not be checked", str(self._session.lab.records[-1])
        done = await self.work.compute(failure, "slow", claim=one.id, folder=folder)
        if done is None:
            return
        await self._read()
        if done["error"]:
            self.work.show_error(f"{failure}: {done['error']}")
            return
        with self._dialog:
            ui.notify(f"{one.id}: {done['outcome']}")

    def show_again(self, claims: Iterable[Shelved]) -> None:
        """Show the open claim as it is among these, which were read anew."""
        for one in claims:
            if self._one is not None and one.id == self._one.id:
                self.show(one)

    def _refresh(self) -> None:
        """Move the bar: how long it takes is known from the last time."""
        if self._began is not None:
            self._bar.set_value(min(0.97, (time.monotonic() - self._began) / self._expected))


def _figures_of(one: Shelved) -> tuple[tuple[tuple[str, Figure], ...], tuple[str, ...]]:
    """The figures of its last check; where it has none, the pictures that come with the package."""
    figures = one.figures()
    return figures, () if figures else one.pictures()


def _seconds(one: Shelved) -> float | None:
    """How long the last check of the small preset took."""
    return next((check.record.seconds for check in one.checks if check.record.preset == "small"), None)


def _what(one: Shelved) -> None:
    """What the claim says, and how it is decided."""
    evidence = one.record.evidence if one.record else one.evidence
    sign = _SIGNS.get(one.outcome, "–")
    ui.label(f"{sign} {one.outcome} · {evidence}").classes("text-subtitle2").props('data-fact="outcome"')
    ui.label(f"{one.id}; {one.source}; origin: {one.origin}").classes("text-caption lab-caption")
    sentence(one.statement).props('data-fact="statement"')
    if one.insight:
        sentence(one.insight)
    record = one.record
    _section("Criterion", {"": record.criterion if record else one.criterion})
    _section("Setting", record.setting if record else one.setting)


def _record(one: Shelved) -> None:
    """What the last check found, and when each preset was checked."""
    if one.record is None:
        ui.label("No record of a check in the folders that the lab reads.")
        return
    record = one.record
    parts = ", ".join(f"{name}: {decision}" for name, decision in record.parts.items())
    _section(
        "Record",
        {
            **{name: getattr(record, name) for name in ("measured", "expected", "tolerance", "difference")},
            "parts": parts,
            "what the numbers are": record.details.get("meaning"),
            "history": record.history,
            "error": record.details.get("error") if record.failed else None,
        },
    )
    for check in one.checks:
        found = check.record
        what = f"preset {found.preset}: {found.outcome} ({found.evidence})"
        ui.label(f"{what}, {found.provenance.created}, in {found.seconds:.3g} s").classes(
            "text-caption lab-caption"
        )


def _section(title: str, values: dict[str, Any]) -> None:
    """A heading, and a list of names and values; what is None or empty is left out."""
    told = {name: value for name, value in values.items() if value not in (None, "", {}, [], ())}
    if not told:
        return
    heading(title).props("aria-level=3")
    if set(told) == {""}:
        sentence(told[""])
        return
    with ui.element("dl").classes("lab-listing"):
        for name, value in told.items():
            with ui.element("dt"):
                ui.label(name.replace("_", " "))
            with ui.element("dd"):
                sentence(in_short(value)).props["data-fact"] = name  # a text of props may hold code
