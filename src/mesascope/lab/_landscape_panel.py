"""A fold-out below the training: the plateaus of its flow, and its loss as a formula."""

from __future__ import annotations

import math
from typing import Any

from nicegui import ui

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
_FORMULA = (
    "The loss of the weights a I and b I in symbols, with m_n = E x^n the moments of a coordinate of the first token, and the "
    "product ab at which it is least."
)
_NONE = "This flow passes no saddle: the only critical point on its way is the one at which it ends."


class LandscapePanel:
    """Plateaus and formula of the setting; each is computed when it is asked for.

    Args:
        session: of the window.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        with (
            ui.expansion("Plateaus of this flow, and its loss as a formula")
            .classes("w-full lab-fold")
            .props("data-act=landscape")
        ):
            sentence(_PLATEAUS)
            _button("Find the plateaus", self._find)
            self.finding = Work(session, "saddles")
            self._found = ui.column().classes("w-full gap-1").props('data-fact="plateaus"')
            self._plot = Plot("plateaus")
            sentence(_FORMULA)
            _button("Derive the formula", self._derive)
            self.deriving = Work(session, "derivation")
            self._formula = ui.column().classes("w-full gap-1").props('data-fact="formula"')

    def clear(self) -> None:
        """Stop and remove what belongs to another setting."""
        for name in ("saddles", "derivation"):
            self._session.cancel(name)
            self._session.results.pop(name, None)
        self._found.clear()
        self._formula.clear()
        self._plot.card.set_visibility(False)

    def draw(self) -> None:
        """Draw the figure in the colours of the theme."""
        found = self._session.results.get("saddles")
        if found is not None and found["figure"] is not None and len(found["table"]) > 1:
            self._plot.show(found["figure"], self._session.theme)

    async def _find(self) -> None:
        found = await self.finding.compute("The plateaus could not be found", "slow", spec=self._session.spec)
        if found is None:
            return
        self._found.clear()
        with self._found:
            if found["figure"] is None:
                ui.label(f"The flow did not come to its end: {found['message']}")
            elif len(found["table"]) < 2:
                ui.label(_NONE)
            else:
                _table(found["table"])
        self.draw()

    async def _derive(self) -> None:
        found = await self.deriving.compute(
            "The formula could not be derived", "slow", spec=self._session.spec
        )
        if found is None:
            return
        self._formula.clear()
        with self._formula:
            for equation in found["symbols"].values():
                _equation(equation)
            values = ", ".join(f"{symbol} = {value}" for symbol, value in found["values"].items())
            sentence(f"With {values}:")
            for equation in found["numbers"].values():
                _equation(equation)


def _equation(equation: str) -> None:
    written = f'<math display="block">{equation}</math>'
    ui.html(written, sanitize=False).classes("lab-formula").props("tabindex=0 role=group aria-label=formula")


def _button(text: str, act: Any) -> None:
    ui.button(text, on_click=act).props("no-caps unelevated")


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
