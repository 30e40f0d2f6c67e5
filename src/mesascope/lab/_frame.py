"""What every page of the lab has: a header with the pages, the theme, and the state of its window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from nicegui import events, ui

from mesascope.report import DARK, LIGHT

from ._session import Lab, Session

PAGES = {
    "/": "Story",
    "/expert": "Expert",
    "/models": "Models",
    "/claims": "Claims",
    "/compare": "Compare",
}
"""Addresses of the pages, and their names in the header."""

_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_SYSTEM = "[matchMedia('(prefers-color-scheme: dark)').matches, innerWidth <= 900]"  # is it dark, is the window narrow
# Until a theme is chosen by the button, figures follow the system, as the rest of the page does by itself.
_FOLLOW_SYSTEM = """
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('lab_dark', event.matches))
"""
_MARK_FRAMED = "document.body.classList.toggle('lab-framed', self !== top)"  # by the page that compares

# Arrow keys move through the menu that has the focus; Quasar itself handles them in selects.
_MENU_KEYS = """
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.(".q-menu"), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!menu || !step) return;
  event.preventDefault();
  const items = [...menu.querySelectorAll(".q-item")], at = items.indexOf(event.target);
  items.at(at < 0 && step > 0 ? 0 : (Math.max(at, 0) + step) % items.length).focus();
});
"""


class Frame(ABC):
    """One window of the lab.

    Attributes:
        path: address of the page, one of `PAGES`.
        session: the state of the window.
        links: to the pages, by address.
    """

    path: str

    def __init__(self, lab: Lab, query: str = "") -> None:
        self.session = Session(lab, query)
        self.links: dict[str, ui.link] = {}
        ui.add_css(_STYLE)
        ui.colors(primary="#0b4f8a")
        self._dark = ui.dark_mode(None)
        with ui.header().classes("items-center gap-2 lab-header"):
            ui.label("mesascope lab").classes("text-h6 lab-name").props("role=heading aria-level=1")
            with ui.element("nav").props('aria-label="pages"').classes("lab-nav"):
                for path, name in PAGES.items():
                    self.links[path] = ui.link(name, path)
                    if path == self.path:
                        self.links[path].props('aria-current="page"')
            ui.space()
            self.add_actions()
            button = ui.button(icon="contrast", on_click=self._switch_theme).classes("lab-theme")
            button.props('flat round color=white aria-label="light or dark"')
        ui.on("lab_dark", self._system_theme)
        ui.on("lab_theme", lambda event: self._choose_theme(event.args is True))
        ui.timer(0.15, self._refresh)

    def add_actions(self) -> None:  # noqa: B027
        """Add buttons of this page to the header."""

    @abstractmethod
    def redraw(self) -> None:
        """Draw everything again in the colours of the theme."""

    @abstractmethod
    async def begin(self, narrow: bool) -> None:
        """Do what needs the browser; `narrow`: the window shows one column."""

    async def start(self) -> None:
        """Take theme and width once the window is there, and begin."""
        try:
            found = await ui.run_javascript(_SYSTEM, timeout=10)
        except TimeoutError:  # a busy browser
            found = [False, False]
        if found is None:  # it was closed at once
            return
        dark, narrow = map(bool, found)
        self._recolour(dark)
        for script in (_FOLLOW_SYSTEM, _MARK_FRAMED, _MENU_KEYS):
            ui.run_javascript(script)
        await self.begin(narrow)

    def _switch_theme(self) -> None:
        self._choose_theme(self.session.theme is LIGHT)

    def _choose_theme(self, dark: bool) -> None:
        self._dark.set_value(dark)
        self._recolour(dark)

    def _system_theme(self, event: events.GenericEventArguments) -> None:
        if self._dark.value is None:
            self._recolour(bool(event.args))

    def _recolour(self, dark: bool) -> None:
        self.session.theme = DARK if dark else LIGHT
        self.redraw()

    def _refresh(self) -> None:
        for refresh in self.session.watchers:
            refresh()
