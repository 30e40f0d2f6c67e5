"""Claims of papers with their checks, which can be repeated; studies and runs of stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from nicegui import run, ui

from mesascope.records import SIGNS, Figure
from mesascope.report import Material, Theme

from ._session import Session
from ._shelf import NOT_CHECKED, Shelf, Shelved, read_store, shelve
from ._widgets import Plot, Work

_MARKS = dict[str, str]([*SIGNS.items(), (NOT_CHECKED, "–")])
_EVERY, _FOUND = "every outcome", "What we found that the papers do not say"
_MAX_ROWS = 200  # of studies and runs


class ClaimsPanel:
    """Claims of one paper at a time, or studies and runs of one store."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: list[dict[str, Any]] = []
        self._shelf = Shelf((), (), ())
        self._store = Material()
        self._rows_by_name: dict[str, ui.expansion] = {}
        with ui.row().classes("items-center gap-3"):
            self._paper = ui.select([], label="paper or store", on_change=self._choose)
            self._outcome = ui.select([_EVERY, *_MARKS], value=_EVERY, label="outcome", on_change=self.draw)
            for name, choice in (("paper", self._paper), ("outcome", self._outcome)):
                choice.props(f"dense outlined options-dense stack-label data-field={name}").classes(
                    "lab-select"
                )
        self._counts = ui.label("").props('data-fact="counts"')
        self.loading = Work(session, "claims")
        self.work = Work(session, "rerun")
        self._rows = ui.column().classes("w-full gap-1")

    async def open(self) -> None:
        """Show the claims, unless that is done."""
        if self._known:
            return
        known = await self.loading.compute("The claims could not be listed")
        if known is None or self._known:
            return
        self._known = known
        await self._read()
        papers = dict.fromkeys(one.paper for one in self._shelf.claims)
        self._paper.set_options([_FOUND, *papers, *self._shelf.stores], value=_FOUND)

    async def _read(self) -> None:
        """Read the records; show errors of those that cannot be read."""
        *folders, own = self._session.lab.records
        shelf = await run.io_bound(shelve, self._known, folders, own)
        if shelf is not None:  # the server is ending
            self._shelf = shelf
            self.loading.show_error("; ".join(shelf.problems) or None)

    async def _choose(self) -> None:
        if self._paper.value in self._shelf.stores:
            self._rows.clear()
            self._counts.set_text("reading the store …")
            read = await run.io_bound(read_store, self._paper.value)
            if read is None:
                return
            self._store, problems = read
            self.loading.show_error("; ".join(problems) or None)
        self.draw()

    def draw(self) -> None:
        """List what is chosen."""
        opened = [name for name, row in self._rows_by_name.items() if row.value]
        self._rows.clear()
        self._rows_by_name.clear()
        is_store = self._paper.value in self._shelf.stores
        self._outcome.set_visibility(not is_store)
        with self._rows:
            if is_store:
                self._list_store(self._store)
            else:
                self._list_claims()
        for name in opened:
            if name in self._rows_by_name:
                self._rows_by_name[name].open()

    def _list_claims(self) -> None:
        found = self._paper.value == _FOUND
        chosen = [
            one for one in self._shelf.claims if (one.insight if found else one.paper == self._paper.value)
        ]
        counts = Counter(one.outcome for one in chosen)
        self._counts.set_text(
            ", ".join(f"{counts[outcome]} {outcome}" for outcome in _MARKS if counts[outcome])
        )
        for one in chosen:
            if self._outcome.value in (_EVERY, one.outcome):
                title = f"{_MARKS[one.outcome]} {one.outcome} · {one.title}"
                self._row(
                    one.id,
                    title,
                    f"{one.id}: {one.insight if found else one.statement}",
                    one.figures,
                    partial(self._describe, one),
                )

    def _list_store(self, material: Material) -> None:
        studies, runs = material.of("study"), material.of("run")
        self._counts.set_text(f"{len(studies)} studies; {len(runs)} runs outside of them")
        for study in studies:
            statuses = Counter(row.status for row in study.more["rows"].values())
            counts = ", ".join(f"{count} {status}" for status, count in statuses.items())
            record = study.record
            axes = ", ".join(axis.name for axis in record.axes)
            title = f"study {record.name} · {len(record.runs)} runs: {counts}"
            caption = f"{record.kind}{f' over {axes}' if axes else ''}"
            self._row(record.name, title, caption, partial(_figures, study))
        for entry in runs[:_MAX_ROWS]:
            row = entry.record
            title = f"run {row.id[:12]} · {row.kind}, {row.status}"
            self._row(
                row.id,
                title,
                row.error or "",
                partial(_figures, entry),
                partial(_outcome, row.outcome),
            )
        if len(runs) > _MAX_ROWS:
            ui.label(f"… and {len(runs) - _MAX_ROWS} more; mesascope runs list shows all.")

    def _row(
        self,
        name: str,
        title: str,
        caption: str,
        figures: Callable[[], Iterable[tuple[str, Figure]]],
        describe: Callable[[bool], None] = lambda drawn: None,
    ) -> None:
        """A row that opens: what `describe` shows, called with whether there are figures, then the figures."""
        row = ui.expansion(title, caption=caption).classes("w-full lab-claim")
        row.props(f'data-claim="{name}" dense-toggle')
        self._rows_by_name[name] = row
        shown: list[bool] = []

        async def opened(event: Any) -> None:
            if event.value and not shown:
                shown.append(True)
                drawn = await run.io_bound(figures) or ()
                with row:
                    describe(bool(drawn))
                    for figure in drawn:
                        _draw(*figure, self._session.theme)

        row.on_value_change(opened)

    def _describe(self, one: Shelved, drawn: bool) -> None:
        _details(one)
        if one.record is not None and not drawn:
            ui.label("No figures lie beside its record; checking it again draws them.").classes(
                "text-caption lab-caption"
            )
        label = "Check it again" if drawn else "Check it again with its figures"
        small = next((check.record for check in one.checks if check.record.preset == "small"), None)
        took = f", took {small.seconds:.2g} s" if small else ""
        ui.button(label, on_click=lambda: self._rerun(one)).props(
            "no-caps unelevated data-act=rerun"
        ).tooltip(f"small preset{took}")

    async def _rerun(self, one: Shelved) -> None:
        failure, folder = f"{one.id} could not be checked", str(self._session.lab.records[-1])
        done = await self.work.compute(failure, "slow", claim=one.id, folder=folder)
        if done is None:
            return
        if done["error"]:
            self.work.show_error(f"{failure}: {done['error']}")
        await self._read()
        self.draw()
        if not done["error"]:
            with self._rows:  # the row of the button was removed
                ui.notify(f"{one.id}: {done['outcome']}")


def _details(one: Shelved) -> None:
    ui.label(f"{one.source}; origin: {one.origin}").classes("text-caption lab-caption")
    if one.record is None:
        ui.label("No record of a check in the folders that the lab reads.")
        return
    record = one.record
    for name in ("measured", "expected", "tolerance"):
        if (value := getattr(record, name)) is not None:
            ui.label(f"{name}: {_brief(value)}").props(f'data-fact="{name}"')
    if record.failed:
        ui.label(f"the check ended in an error: {record.details.get('error')}")
    parts = ", ".join(f"{name}: {decision}" for name, decision in record.parts.items())
    for label, text in (
        ("evidence", record.evidence),
        ("difference", record.difference),
        ("parts", parts),
        ("what the numbers are", record.details.get("meaning")),
        ("criterion", record.criterion),
        ("history", record.history),
    ):
        if text:
            ui.label(f"{label}: {text}")
    for check in one.checks:
        found = check.record
        ui.label(
            f"preset {found.preset}: {found.outcome} ({found.evidence}), {found.provenance.created}, in {found.seconds:.3g} s"
        ).classes("text-caption lab-caption")


def _figures(entry: Any) -> tuple[tuple[str, Figure], ...]:
    """Of a study or a run."""
    found: tuple[tuple[str, Figure], ...] = entry.figures
    return found


def _outcome(outcome: dict[str, Any], drawn: bool) -> None:
    for name, value in outcome.items():
        if not (isinstance(value, list) and any(isinstance(part, list | dict) for part in value)):
            ui.label(f"{name}: {_brief(value)}")


def _draw(name: str, figure: Figure, theme: Theme) -> None:
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
