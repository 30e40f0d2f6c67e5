"""The data, and what theory says about them."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ._figures import OF_FACTS
from ._session import Session
from ._widgets import Plot, heading, sentence
from ._words import conclusions

_QUANTITIES = {
    "m2": "E x^2",
    "kappa1": "κ1 = E x^4",
    "kappa2": "κ2 = E x^6",
    "kappa3": "κ3 = Σ_{r≠j} E x_j^2 x_r^4",
    "limit": "limit of ab",
    "gap": "capability gap",
    "ratio": "mean ratio ŷ/x",
}
_ASSUMPTIONS = {
    "4.1": "Assumption 4.1: training all weights makes a gradient step emerge",
    "4.2": "Assumption 4.2: that step recovers the data",
    "diagonal": "Diagonal weights stay diagonal",
}


class DataPanel:
    """Properties of the law, its entries, and sequences.

    Attributes:
        facts: the place of what theory says.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.facts = ui.column().classes("w-full gap-2 lab-facts")
        with ui.element("div").classes("lab-grid"):
            self._plots = [Plot(name) for name in OF_FACTS]

    def draw(self) -> None:
        """Show what was computed."""
        facts = self._session.results.get("facts")
        if facts is None:
            return
        self.facts.clear()
        with self.facts:
            _show(facts)
        for plot in self._plots:
            square = {} if plot.name == "law" else {"yaxis": {"scaleanchor": "x"}}
            plot.show(OF_FACTS[plot.name](facts), self._session.theme, **square)


def _show(facts: dict[str, Any]) -> None:
    with ui.card().classes("lab-card"):
        heading(f"What theory says about {facts['law']}")
        for line in conclusions(facts):
            sentence(line)
        with ui.row().classes("gap-4 wrap"):
            quantities = facts | facts["moments"]
            for name, label in _QUANTITIES.items():
                value, text = quantities[name]
                if value is not None:
                    _quantity(label, text, name)
        for name, label in _ASSUMPTIONS.items():
            holds, reason = facts["answers"][name]
            row = ui.row().classes("items-start no-wrap gap-2")
            row.props["data-answer"] = name
            with row:
                ui.icon("check_circle" if holds else "cancel").classes(
                    "lab-yes" if holds else "lab-no"
                ).props("aria-hidden=true")
                sentence(f"{label}: {'yes' if holds else 'no'}. {reason}.")


def _quantity(label: str, value: str, name: str) -> None:
    column = ui.column().classes("gap-0")
    column.props["data-fact"] = name
    with column:
        sentence(label).classes("text-caption lab-caption")
        ui.label(value).classes("text-weight-medium")
