"""What the literature claims, what checking it gave, and checking it again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nicegui import run, ui

from mesascope.report import Theme
from mesascope.studies import SpecError

from ._jobs import JobFailedError
from ._session import Session
from ._shelf import Shelved, shelve
from ._widgets import Plot, Work

_MARKS = {"verified": "✓", "refuted": "✗", "inconclusive": "?", "not checked": "–"}
_FIRST = "zheng2024"


class ClaimsPanel:
    """Claims of one paper at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shelf: list[Shelved] = []
        with ui.row().classes("items-center gap-3"):
            self._paper = ui.select([], label="paper", on_change=self._list).props(
                "dense outlined options-dense stack-label data-field=paper"
            )
            self._verdict = ui.select(
                ["every verdict", *_MARKS], value="every verdict", label="verdict", on_change=self._list
            ).props("dense outlined options-dense data-field=verdict")
            self._paper.classes("lab-select")
            self._verdict.classes("lab-select")
        self._counts = ui.label("").props('data-fact="counts"')
        self.loading = Work(lambda: session.busy.get("claims"), lambda: session.cancel("claims"))
        self.work = Work(lambda: session.busy.get("rerun"), lambda: session.cancel("rerun"))
        self._rows = ui.column().classes("w-full gap-1")

    async def open(self) -> None:
        """Show the claims, unless that is done."""
        if self._shelf:
            return
        self.loading.complain(None)
        try:
            known = await self._session.compute("claims")
        except (SpecError, JobFailedError) as error:
            self.loading.complain(f"The claims could not be listed: {error}")
            return
        if known is None or self._shelf:
            return
        self._shelf = await run.io_bound(shelve, known, self._session.lab.records) or []
        papers = list(dict.fromkeys(one.paper for one in self._shelf))
        self._paper.set_options(papers, value=_FIRST)

    def draw(self) -> None:
        """List the claims that are chosen."""
        self._list()

    def _list(self) -> None:
        chosen = [one for one in self._shelf if one.paper == self._paper.value]
        counts = Counter(one.verdict for one in chosen)
        self._counts.set_text(
            ", ".join(f"{counts[verdict]} {verdict}" for verdict in _MARKS if counts[verdict])
        )
        self._rows.clear()
        with self._rows:
            for one in chosen:
                if self._verdict.value in ("every verdict", one.verdict):
                    self._row(one)

    def _row(self, one: Shelved) -> None:
        title = f"{_MARKS[one.verdict]} {one.verdict} · {one.id.partition('/')[2]}"
        row = ui.expansion(title, caption=one.statement).classes("w-full lab-claim")
        row.props(f'data-claim="{one.id}" dense-toggle')
        shown: list[bool] = []

        async def opened(event: Any) -> None:
            if event.value and not shown:
                shown.append(True)
                figures = await run.io_bound(one.figures)
                with row:
                    _details(one)
                    for name, figure in figures or ():
                        _draw(name, figure, self._session.theme)
                    ui.button("Check it again", on_click=lambda: self._rerun(one)).props(
                        "no-caps unelevated data-act=rerun"
                    )

        row.on_value_change(opened)

    async def _rerun(self, one: Shelved) -> None:
        self.work.complain(None)
        folder = self._session.lab.records[-1]
        try:
            done = await self._session.compute("rerun", "slow", claim=one.id, folder=str(folder))
        except (SpecError, JobFailedError) as error:
            self.work.complain(f"{one.id} could not be checked: {error}")
            return
        if done is None:
            return
        if done["error"]:
            self.work.complain(f"{one.id} could not be checked: {done['error']}")
        claims = [
            {name: getattr(s, name) for name in ("id", "statement", "source", "origin")} for s in self._shelf
        ]
        self._shelf = await run.io_bound(shelve, claims, self._session.lab.records) or []
        self._list()
        if not done["error"]:
            with self._rows:  # the row that asked is gone
                ui.notify(f"{one.id}: {done['record']['verdict']}")


def _details(one: Shelved) -> None:
    ui.label(f"{one.source}; says: {one.origin}").classes("text-caption lab-caption")
    if one.record is None:
        ui.label("No record of a check in the folders that the lab reads.")
        return
    record = one.record
    for name, value in (
        ("measured", record.measured),
        ("expected", record.expected),
        ("tolerance", record.tolerance),
    ):
        if value is not None:
            ui.label(f"{name}: {_brief(value)}").props(f'data-fact="{name}"')
    if "tolerance_reason" in record.details:
        ui.label(f"why this tolerance: {record.details['tolerance_reason']}")
    ui.label(
        f"checked in {record.seconds:.3g} s, preset {record.preset}, {record.provenance.created}"
    ).classes("text-caption lab-caption")


def _draw(name: str, figure: Any, theme: Theme) -> None:
    """Every panel of a figure, with its own downloads."""
    for number, panel in enumerate(figure.panels):
        single = figure.model_copy(update={"panels": (panel,), "title": panel.title})
        Plot(f"{name.replace('/', '-')}{f'-{number + 1}' if len(figure.panels) > 1 else ''}").show(
            single, theme
        )


def _brief(value: Any) -> str:
    """A measured or expected value in a line or two."""
    match value:
        case float():
            return f"{value:.8g}"
        case dict():
            return ", ".join(f"{name}: {_brief(one)}" for name, one in value.items())
        case [first, _, _, *_, last]:
            return f"{_brief(first)}, …, {_brief(last)} ({len(value)} of them)"
        case list() | tuple():
            return ", ".join(map(_brief, value))
        case _:
            return str(value)
