"""A fold-out below the law: the search for a law that breaks a property of the theory."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ._session import Session
from ._setting import DEFAULT, read_setting, to_query
from ._widgets import Work, sentence

_ABOUT = (
    "Choose what may hold for every law. The search tries laws with a few atoms at random, and changes them as long as a "
    "violation comes nearer. What it finds is decided in rational numbers; nothing found proves nothing."
)


class CounterexamplePanel:
    """A property to choose, and the law that was found to break it; does not depend on the setting.

    Args:
        session: of the window.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        fold = ui.expansion("Search for a law that breaks the theory").classes("w-full lab-fold")
        with fold.props("data-act=counterexample").on_value_change(self._offer):
            sentence(_ABOUT)
            self._property = ui.select({}, label="property").classes("w-full")
            self._property.props('dense outlined aria-label="property" data-field="property"')
            self._button = ui.button("Search", on_click=self._search).props("no-caps unelevated")
            self._button.disable()
            self._offering = Work(session, "properties")
            self._searching = Work(session, "broken")
            self._found = (
                ui.column().classes("w-full gap-1").props('data-fact="counterexample" aria-live=polite')
            )

    async def _offer(self) -> None:
        if self._property.options:
            return
        known = await self._offering.compute("The properties could not be listed")
        if known is not None:
            self._property.set_options(known, value=next(iter(known)))
            self._button.enable()

    async def _search(self) -> None:
        self._found.clear()
        found = await self._searching.compute("The search failed", "slow", stated=self._property.value)
        if found is None:
            return
        with self._found:
            for name, text in found["table"].items():
                ui.label(f"{name}: {text}")
            if found["setting"] is not None:
                ui.link("Open this setting", _address(found["setting"]))


def _address(found: dict[str, Any]) -> str:
    """The expert's page with the setting of a counterexample, and the start of the default."""
    return f"/expert?{to_query(read_setting({**DEFAULT, **found}))}"
