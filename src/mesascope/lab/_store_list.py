"""Studies and runs of a store, each in a row that opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from nicegui import run, ui

from mesascope.report import Material

from ._session import Session
from ._shelf import read_store
from ._widgets import draw_figures, in_short

_MAX_ROWS = 200  # of runs


def list_store(session: Session, folder: str) -> None:
    """A row for a store; it reads the store when it opens."""

    async def fill() -> None:
        read = await run.io_bound(read_store, folder)
        if read is None:  # the server is ending
            return
        material, problems = read
        with row:
            for problem in problems:
                ui.label(problem).classes("lab-error").props("role=alert")
            _list(session, material)

    row = _row(folder, "Runs of this store", folder, fill)


def _list(session: Session, material: Material) -> None:
    studies, runs = material.of("study"), material.of("run")
    ui.label(f"{len(studies)} studies; {len(runs)} runs outside of them").props('data-fact="counts"')
    for study in studies:
        record = study.record
        statuses = Counter(row.status for row in study.more["rows"].values())
        counts = ", ".join(f"{count} {status}" for status, count in statuses.items())
        axes = ", ".join(axis.name for axis in record.axes)
        title = f"study {record.name} · {len(record.runs)} runs: {counts}"
        _entry(session, record.name, title, f"{record.kind}{f' over {axes}' if axes else ''}", study)
    for entry in runs[:_MAX_ROWS]:
        row = entry.record
        title = f"run {row.id[:12]} · {row.kind}, {row.status}"
        _entry(session, row.id, title, row.error or "", entry)
    if len(runs) > _MAX_ROWS:
        ui.label(f"… and {len(runs) - _MAX_ROWS} more; mesascope runs list shows all.")


def _entry(session: Session, name: str, title: str, caption: str, entry: Any) -> None:
    async def fill() -> None:
        with row:
            if entry.kind == "run":
                _outcome(entry.record.outcome)
            draw_figures(entry.figures, session.theme)

    row = _row(name, title, caption, fill)


def _row(name: str, title: str, caption: str, fill: Callable[[], Any]) -> ui.expansion:
    """A row that is filled when it opens for the first time."""
    row = ui.expansion(title, caption=caption).classes("w-full lab-claim")
    row.props("dense-toggle")
    row.props["data-row"] = name  # a text of props may hold code
    filled: list[bool] = []

    async def opened(event: Any) -> None:
        if event.value and not filled:
            filled.append(True)
            await fill()

    row.on_value_change(opened)
    return row


def _outcome(outcome: dict[str, Any]) -> None:
    for name, value in outcome.items():
        if not (isinstance(value, list) and any(isinstance(part, list | dict) for part in value)):
            ui.label(f"{name}: {in_short(value)}")
