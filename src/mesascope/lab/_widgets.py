"""Parts that panels are made of: fields with their messages, figures with their downloads, work in progress."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Lock
from typing import Any

from nicegui import run, ui

from mesascope.records import Figure
from mesascope.report import Theme, plotly_panel, render, tex_to_text, write_csv

from ._words import typeset

Changed = Callable[[str, str], Awaitable[None]]
"""A field was given another text: taken at once; what follows from it comes when it is awaited."""

_TAGS = re.compile(r"<[^>]*>")
_LEGEND_WIDTH = 300  # pixels of a figure on a phone
_CONFIG = {
    "displayModeBar": False,
    "doubleClick": "reset",
    "responsive": False,
}  # `picture.js` fits pictures to the window
NO_FLOW = "This setting has no trained layer yet: its flow is on its way, or was stopped."
_DRAWING = Lock()  # matplotlib's settings are those of the process


class Slider(ui.slider):
    """A slider that keeps its place in the browser: waiting for the server's answer, it would lose keys that come sooner."""

    LOOPBACK = False


class Field:
    """A text with a label, a slider where a range is given, and a message below when it is wrong."""

    def __init__(
        self,
        name: str,
        label: str,
        changed: Changed,
        *,
        slider: tuple[float, float, float] | None = None,
        lines: bool = False,
        hint: str = "",
    ) -> None:
        self.name, self._changed, self._quiet = name, changed, False
        with ui.column().classes("w-full gap-0") as self.box:
            make = ui.textarea if lines else ui.input
            self.text = make(label, on_change=self._typed).props(
                "dense outlined hide-bottom-space debounce=300"
            )
            self.text.classes("w-full").props(f'data-field="{name}"')
            if hint:
                self.text.props(f'hint="{hint}"')
            self.slider = None
            if slider is not None:
                low, high, step = slider
                self.slider = Slider(min=low, max=high, step=step, value=low, on_change=self._dragged)
                self.slider.props(f'dense aria-label="{label}" data-slider="{name}"').classes("px-2")

    # Not coroutines: those would look whether they are to be quiet when it is too late.

    def _typed(self, event: Any) -> Awaitable[None] | None:
        if self._quiet:
            return None
        self._move_slider(event.value or "")
        return self._changed(self.name, event.value or "")

    def _dragged(self, event: Any) -> Awaitable[None] | None:
        if self._quiet or event.value is None:
            return None
        value = f"{event.value:.6g}"
        self._silently(lambda: self.text.set_value(value))
        return self._changed(self.name, value)

    def _silently(self, act: Callable[[], object]) -> None:
        self._quiet = True
        try:
            act()
        finally:
            self._quiet = False

    def _move_slider(self, text: str) -> None:
        try:
            value = float(text)
        except ValueError:
            return
        if self.slider is not None and self.slider.props["min"] <= value <= self.slider.props["max"]:
            self._silently(lambda: self.slider and self.slider.set_value(value))

    def show(self, text: str) -> None:
        """Show a text that came from elsewhere."""
        if text != (self.text.value or ""):
            self._silently(lambda: self.text.set_value(text))
        self._move_slider(text)

    def complain(self, message: str | None) -> None:
        """Show what is wrong, or nothing."""
        self.text.error = message


class Choice:
    """One of several values."""

    def __init__(self, name: str, label: str, options: dict[str, str], changed: Changed) -> None:
        self.name, self._changed, self._quiet = name, changed, False
        with ui.column().classes("w-full gap-0") as self.box:
            self.select = ui.select(options, label=label, on_change=self._chosen).classes("w-full")
            self.select.props(f'dense outlined options-dense hide-bottom-space data-field="{name}"')

    def _chosen(self, event: Any) -> Awaitable[None] | None:
        return None if self._quiet else self._changed(self.name, event.value)

    def show(self, text: str) -> None:
        """Show a value that came from elsewhere."""
        self._quiet = True
        try:
            self.select.set_value(text)
        finally:
            self._quiet = False

    def complain(self, message: str | None) -> None:
        """Show what is wrong, or nothing."""
        self.select.props(remove="error error-message")
        if message:
            self.select.props("error").props["error-message"] = message
            self.select.update()


class _Picture(ui.plotly, component="picture.js"):
    """A figure of plotly, drawn in a frame of its own."""


class Plot:
    """A figure on the page, with its downloads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.figure: Figure | None = None
        with ui.card().classes("lab-card") as self.card:
            with ui.row().classes("w-full items-center no-wrap gap-1"):
                self.title = ui.label(name).classes("grow text-subtitle2").props("role=heading aria-level=2")
                label = f"download {name}"
                with ui.button(icon="download").props(f'flat dense round aria-label="{label}"'), ui.menu():
                    for kind in ("pdf", "png", "csv"):
                        ui.menu_item(kind.upper(), lambda kind=kind: self._download(kind))
            self.plot = _Picture({"data": [], "layout": {"height": 300}, "config": _CONFIG})
            self.plot.classes("w-full").props(f'role=img aria-label="{name}" data-figure="{name}"')
            self.caption = ui.label("").classes("text-caption lab-caption")
        self.card.set_visibility(False)  # until there is something to see

    def show(self, figure: Figure, theme: Theme, **layout: Any) -> None:
        """Draw a figure, with more of plotly's layout."""
        self.figure = figure
        self.card.set_visibility(True)
        panel = figure.panels[0]
        drawn = plotly_panel(panel, theme)
        for name, value in {**_legend(drawn), **layout}.items():
            drawn["layout"][name] = (
                drawn["layout"].get(name, {}) | value if isinstance(value, dict) else value
            )
        title, caption = tex_to_text(figure.title), tex_to_text(figure.caption)
        self.title.set_text(title)
        self.caption.set_text(caption)
        self.plot.props["aria-label"] = f"{title}. {caption}"
        self.plot.update_figure({**drawn, "config": _CONFIG})

    async def _download(self, kind: str) -> None:
        if self.figure is None:
            return
        try:
            content = await run.io_bound(_file, self.figure, kind)
        except (OSError, ValueError) as error:
            ui.notify(f"cannot be drawn: {error}", type="negative")
            return
        if content is not None:  # the server is ending
            ui.download.content(content, f"{self.name}.{kind}")


def _legend(drawn: dict[str, Any]) -> dict[str, Any]:
    """Room below the axes for the legend, in as many rows as it takes where a page is narrow."""
    names = [
        _TAGS.sub("", trace["name"]) for trace in drawn["data"] if trace.get("showlegend") and "name" in trace
    ]
    if len(names) < 2:
        return {"showlegend": False}
    rows, used = 1, 0
    for name in names:
        width = 50 + 7 * len(name)
        rows, used = (rows, used + width) if used + width <= _LEGEND_WIDTH else (rows + 1, width)
    more = 27 * rows + 4
    layout = drawn["layout"]
    return {
        "height": layout["height"] + more,
        "margin": {"b": layout["margin"]["b"] + more},
        "legend": {
            **{"orientation": "h", "x": 0, "xref": "container", "xanchor": "left"},
            **{"y": 0, "yref": "container", "yanchor": "bottom"},
        },
    }


def _file(figure: Figure, kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder, _DRAWING:
        stem = Path(folder) / "figure"
        if kind == "csv":
            return write_csv(figure, stem.with_suffix(".csv")).read_bytes()
        (path,) = render(figure, stem, ("pdf" if kind == "pdf" else "png",))
        return path.read_bytes()


class Work:
    """Something that takes its time: a spinner, how far it is, a button that stops it, and why it failed."""

    def __init__(
        self,
        progress: Callable[[], str | None],
        cancel: Callable[[], None],
        again: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._progress, self._shown = progress, ""
        with ui.row().classes("items-center gap-2 lab-work").props("role=status") as self.row:
            ui.spinner(size="sm")
            self.text = ui.label("")
            self.stop = ui.button("Cancel", on_click=cancel).props("flat dense no-caps")
        self.row.set_visibility(False)
        self.trouble = ui.label("").classes("lab-trouble").props("role=alert")
        self.trouble.set_visibility(False)
        self.again = ui.button("Try again", on_click=again).props("flat dense no-caps")
        self.again.set_visibility(False)

    def look(self) -> None:
        """Show how far it is; the old picture stays meanwhile."""
        told = self._progress() or ""
        if told != self._shown:
            self._shown = told
            self.text.set_text(told)
            self.row.set_visibility(bool(told))

    def complain(self, message: str | None, *, again: bool = False) -> None:
        """Show why it failed, or nothing; and a button that tries again, where that may help."""
        self.trouble.set_text(message or "")
        self.trouble.set_visibility(bool(message))
        self.again.set_visibility(again)


def sentence(text: str) -> ui.html:
    """A text of `theory`, its signs below and above."""
    return ui.html(typeset(text), sanitize=False)  # everything else is escaped


def later(act: Awaitable[Any]) -> None:
    """Do something without waiting for it."""
    task = asyncio.ensure_future(act)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


_TASKS: set[Any] = set()  # an event loop keeps no task alive by itself
