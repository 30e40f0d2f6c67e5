"""What every page of the lab has: a header with the pages, the theme, and the state of its window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from nicegui import events, ui

from mesascope.report import DARK, LIGHT

from ._session import Lab, Session

PAGES = {"/": "Story", "/expert": "Expert", "/models": "Models", "/claims": "Claims"}
"""Addresses of the pages, and their names in the header."""

_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"
# Until a theme is chosen by the button, figures follow the system, as the rest of the page does by itself.
_FOLLOW_SYSTEM = """
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('lab_dark', event.matches))
"""
_MARK_FRAMED = "document.body.classList.toggle('lab-framed', self !== top)"  # on the page that compares


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
            button = ui.button(icon="contrast", on_click=self._switch_theme)
            button.props('flat round color=white aria-label="light or dark"')
        ui.on("lab_dark", self._system_theme)
        ui.timer(0.15, self._refresh)

    def add_actions(self) -> None:  # noqa: B027
        """Add buttons of this page to the header."""

    @abstractmethod
    def redraw(self) -> None:
        """Draw everything again in the colours of the theme."""

    async def start(self) -> None:
        """Take the theme of the system, once the window is there."""
        try:
            dark = await ui.run_javascript(_IS_DARK, timeout=10)
        except TimeoutError:  # a busy browser
            dark = False
        self._recolour(bool(dark))
        ui.run_javascript(_FOLLOW_SYSTEM)
        ui.run_javascript(_MARK_FRAMED)

    def _switch_theme(self) -> None:
        dark = self.session.theme is LIGHT
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
