"""The expert's page: the form at the side, and three panels."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ._behaviour_panel import BehaviourPanel
from ._counterexample_panel import CounterexamplePanel
from ._data_panel import DataPanel
from ._form import setting_layout
from ._form_panel import FormPanel
from ._landscape_panel import LandscapePanel
from ._layers_panel import LayersPanel
from ._setting_page import Draws, SettingPage
from ._training_panel import TrainingPanel
from ._widgets import later

_BEHAVIOUR = "In-context behaviour"
_TABS = ("Data", "Training", _BEHAVIOUR)


class ExpertPage(SettingPage):
    """One window with every field of a setting."""

    path = "/expert"

    def build(self) -> None:
        """Make the form and the panels."""
        with ui.element("div").classes("lab-page"):
            with ui.element("section").classes("lab-side").props('aria-label="setting"'):
                self._form = FormPanel(setting_layout(), self.session.form, self.changed)
            with ui.element("div").classes("lab-main"):
                self._panels()

    def _panels(self) -> None:
        with ui.tabs(on_change=self._opened).props("no-caps align=left") as self._tabs:
            for name in _TABS:
                ui.tab(name)
        with ui.tab_panels(self._tabs, value="Data", animated=False).classes("w-full lab-panels"):
            with ui.tab_panel("Data"):
                self._data = DataPanel(self.session)
                self.theory = self._data.facts
                CounterexamplePanel(self.session)
            with ui.tab_panel("Training"):
                self._training = TrainingPanel(self.session)
                self._landscape = LandscapePanel(self.session)
            with ui.tab_panel(_BEHAVIOUR):
                self._behaviour = BehaviourPanel(self.session, self.status)
                self._layers = LayersPanel(self.session)

    def prepare(self, narrow: bool) -> None:
        """Fold the form on a phone; let pointer and keys choose starts."""
        self._form.begin(narrow)
        self._training.prepare()

    def show_form(self) -> None:
        """Show texts and errors in the fields."""
        self._form.show(self.session.form, self.session.errors)

    def drawn(self) -> dict[str, Draws]:
        """The open panel goes first."""
        draws: dict[str, Draws] = {
            "flow": (self._training.draw_products, self._training.draw_others),
            "facts": (self._data.draw,),
        }
        return dict(reversed(draws.items())) if self._tabs.value == "Data" else draws

    def clear(self) -> None:
        """Stop sampled training; remove what was measured of other weights."""
        # it reports, and stops, only at points of its path that may be far apart
        self.session.cancel("descent")
        self.session.results.pop("descent", None)
        self._behaviour.clear()
        self._landscape.clear()

    async def finish(self) -> None:
        """Measure the layer where that is shown."""
        if self._tabs.value == _BEHAVIOUR:
            await self._behaviour.measure()

    def redraw(self) -> None:
        """Draw all panels."""
        for panel in (self._data, self._training, self._landscape, self._behaviour, self._layers):
            panel.draw()

    def _opened(self, event: Any) -> None:
        if event.value == _BEHAVIOUR:
            later(self._measure())

    async def _measure(self) -> None:
        with self._tabs:
            await self._behaviour.measure()
