"""The saddles on the way of a flow: a button that finds them, their table, and their figure."""

from __future__ import annotations

import math
from collections.abc import Callable

from nicegui import ui

from mesascope.studies import FlowSpec, ModelFlowSpec

from ._session import Session
from ._widgets import Plot, Work, sentence

_COLUMNS = {
    "loss": "loss",
    "index": "falling directions",
    "order": "order of the fall",
    "rate": "escape rate",
    "leaves": "leaves at time",
    "predicted": "predicted time",
}
_PLATEAUS = (
    "Where a flow passes a saddle, the loss stays nearly constant: a plateau. The table has a row for each "
    "critical point. The lowest order in which the loss falls there (2: a negative eigenvalue of the Hessian) predicts when "
    "the flow leaves it."
)
_NOT_FOUND = "Newton's method finds no critical point near this flow, not even where it ends."
_NONE = "This flow passes no saddle: the only critical point on its way is the one at which it ends."


class PlateausView:
    """Plateaus of one flow; they are computed when they are asked for.

    Args:
        session: of the window.
        spec: returns the flow that the page shows.
    """

    def __init__(self, session: Session, spec: Callable[[], FlowSpec | ModelFlowSpec]) -> None:
        self._session, self._spec = session, spec
        sentence(_PLATEAUS)
        ui.button("Find the plateaus", on_click=self._find).props("no-caps unelevated")
        self.finding = Work(session, "saddles")
        self._found = ui.column().classes("w-full gap-1").props('data-fact="plateaus"')
        self._plot = Plot("plateaus")

    def clear(self) -> None:
        """Stop and remove what belongs to another flow."""
        self._session.cancel("saddles")
        self._session.results.pop("saddles", None)
        self.finding.show_error(None)
        self._found.clear()
        self._plot.card.set_visibility(False)

    def draw(self) -> None:
        """Draw the figure in the colours of the theme."""
        found = self._session.results.get("saddles")
        if found is not None and found["figure"] is not None and len(found["table"]) > 1:
            self._plot.show(found["figure"], self._session.theme)

    async def _find(self) -> None:
        found = await self.finding.compute("The plateaus could not be found", "slow", spec=self._spec())
        if found is None:
            return
        self._found.clear()
        with self._found:
            if found["figure"] is None:
                ui.label(f"The flow did not come to its end: {found['message']}")
            elif not found["table"]:
                ui.label(_NOT_FOUND)
            elif len(found["table"]) == 1:
                ui.label(f"{_NONE} The loss there is {found['table'][0]['loss']:.6g}.")
            else:
                _table(found["table"])
        self.draw()


def _table(rows: list[dict[str, float]]) -> None:
    """Predicted beside measured, a row for each critical point."""
    columns = [
        {"name": name, "label": label, "field": name, "align": "left"} for name, label in _COLUMNS.items()
    ]
    rows = [row | {"order": row["order"] or math.nan} for row in rows]  # 0 where nothing falls
    shown = [{name: _shown(row[name]) for name in _COLUMNS} | {"key": key} for key, row in enumerate(rows)]
    ui.table(columns=columns, rows=shown, row_key="key").classes("w-full").props("dense flat wrap-cells")


def _shown(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "–"
