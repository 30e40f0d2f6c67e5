"""Two pages of the lab side by side, each with its own setting."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from nicegui import ui

from ._frame import PAGES, Frame
from ._session import Lab

_SCRIPT = (Path(__file__).parent / "compare.js").read_text(encoding="utf-8")
_SIDES = {"left": "Left setting", "right": "Right setting"}
_FIRST = "/expert"


class ComparePage(Frame):
    """One window with two pages; its address holds those of both."""

    path = "/compare"

    def __init__(self, lab: Lab, query: str) -> None:
        super().__init__(lab)
        given = parse_qs(query)
        with ui.element("div").classes("lab-sides"):
            for name, title in _SIDES.items():
                with ui.element("section"):
                    ui.label(title).classes("lab-side-title").props("role=heading aria-level=2")
                    frame = ui.element("iframe")
                    frame.props.update(name=name, title=title, src=_page(given.get(name, [_FIRST])[0]))

    def add_actions(self) -> None:
        """Add what is done with a comparison: send it."""
        button = ui.button("Copy the address", icon="share", on_click=self._copy_address)
        button.props("flat no-caps color=white")

    def _copy_address(self) -> None:
        ui.run_javascript("navigator.clipboard.writeText(location.href)")
        ui.notify("The address of both settings was copied.")

    async def begin(self, narrow: bool) -> None:
        """Keep the address up to date."""
        ui.run_javascript(_SCRIPT)

    def redraw(self) -> None:
        """Nothing: both pages draw themselves."""


def compare_address(address: str) -> str:
    """Return the address of this page with an address on both sides."""
    return f"{ComparePage.path}?" + "&".join(f"{name}={quote(address, safe='')}" for name in _SIDES)


def _page(address: str) -> str:
    """The address, if it is that of another page of the lab."""
    parts = urlsplit(address)
    own = parts.path in {*PAGES} - {ComparePage.path} and not parts.scheme and not parts.netloc
    return f"{parts.path}?{parts.query}" if own else _FIRST
