"""What each rule of a memory computes in context, from the record that comes with the package."""

from __future__ import annotations

from nicegui import ui

from mesascope.records import layers_record
from mesascope.report import layers_figure

from ._session import Session
from ._widgets import Plot


class LayersPanel:
    """The distances of learners from layers with a memory, for one kind of data at a time; drawn when it is opened.

    Args:
        session: of the window.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._record = session, layers_record()
        self._fold = ui.expansion("What other layers compute in context").classes("w-full lab-fold")
        self._fold.props("data-act=layers").on_value_change(self.draw)
        with self._fold:
            ui.label(
                "Layers with a memory on data of their own: a row for each rule, with given and with trained weights, a column "
                "for each of the nearest learners."
            )
            names = list(self._record.data)
            self._data = ui.select(names, value=names[0], label="data", on_change=self.draw)
            self._data.props('dense outlined aria-label="data" data-field="layers"').classes("w-64")
            self._plot = Plot("layers")

    def draw(self) -> None:
        """Show the distances on the chosen data, if the panel is open."""
        if self._fold.value:
            self._plot.show(layers_figure(self._record, self._data.value), self._session.theme)
