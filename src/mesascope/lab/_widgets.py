"""Parts that panels are made of: fields with their errors, figures with their downloads, work in progress."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from nicegui import run, ui
from nicegui.json import dumps

from mesascope.records import Figure, Heatmap
from mesascope.report import Theme, plotly_panel, render, tex_to_text, write_csv
from mesascope.studies import SpecError

from ._jobs import JobFailedError
from ._session import Session
from ._sizes import RESERVED
from ._words import typeset

Changed = Callable[[str, str], Awaitable[None]]
"""Takes the name of a field and its new text at once; what is awaited then reads the form."""

_TAGS = re.compile(r"<[^>]*>")
_PLACES = re.compile(r"(?:^|(?<=\. ))(?:Left|Middle|Then|Right): ")
_NAMES = 8  # rows of a heat map with names, from which on it needs the width of the page
_SHORT = 2  # letters of the number of a row, which needs no more width
_LEGEND_WIDTH = 300  # pixels of a figure on a phone
_CONFIG = {
    "displayModeBar": False,
    "doubleClick": "reset",
    "responsive": False,
}  # `picture.js` fits pictures to the window
_PATIENCE = 0.3  # seconds that a computation lasts before its progress is shown
NO_FLOW = "This setting has no trained layer yet: its flow is being computed, or was stopped."
_DRAWING = Lock()  # matplotlib's settings are those of the process


class Slider(ui.slider):
    """A slider that moves in the browser at once: waiting for the server, it would lose keys that are pressed meanwhile."""

    LOOPBACK = False


class _Input:
    """An element that a text is entered into; what the server itself shows in it is not a change."""

    element: Any  # of NiceGUI, with value and error

    def __init__(self, name: str, changed: Changed) -> None:
        self.name, self._changed, self._muted = name, changed, False
        self.box = ui.column().classes("w-full gap-0")

    @contextmanager
    def _silently(self) -> Iterator[None]:
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    # No coroutine: that would read `_muted` only later.
    def _entered(self, text: str) -> Awaitable[None] | None:
        return None if self._muted else self._changed(self.name, text)

    def _write_label(self, label: str) -> None:
        """Show the signs of a label as scripts: ρ_t, W^KQ."""
        if "<su" in (written := typeset(label)):
            self.element.add_slot("label", f"<span v-pre>{written}</span>")

    def show_error(self, message: str | None) -> None:
        """Show what is wrong, or nothing."""
        self.element.error = message


class Field(_Input):
    """A text with a label, a slider where a range is given, and an error below when it is wrong.

    `hint` stands below the text, `about` is shown while the pointer rests on it.
    """

    def __init__(
        self,
        name: str,
        label: str,
        text: str,
        changed: Changed,
        *,
        slider: tuple[float, float, float] | None = None,
        lines: bool = False,
        hint: str = "",
        about: str = "",
    ) -> None:
        super().__init__(name, changed)
        with self.box:
            make = ui.textarea if lines else ui.input
            # with its text from the start: what is set later arrives later, over what was typed meanwhile
            self.element = make(label, value=text, on_change=self._typed).classes("w-full")
            self.element.props("dense outlined hide-bottom-space debounce=300")
            texts = {"data-field": name, "hint": hint, "title": about}
            self.element.props.update({key: text for key, text in texts.items() if text})
            self._write_label(label)
            self.slider = None
            if slider is not None:
                low, high, step = slider
                self.slider = Slider(min=low, max=high, step=step, value=low, on_change=self._dragged)
                self.slider.props("dense").classes("px-2")
                self.slider.props.update({"aria-label": label, "data-slider": name})

    def _typed(self, event: Any) -> Awaitable[None] | None:
        if not self._muted:
            self._move_slider(event.value or "")
        return self._entered(event.value or "")

    def _dragged(self, event: Any) -> Awaitable[None] | None:
        if self._muted or not isinstance(event.value, int | float):  # a browser may send anything
            return None
        text = f"{event.value:.6g}"
        with self._silently():
            self.element.set_value(text)
        return self._entered(text)

    def _move_slider(self, text: str) -> None:
        try:
            value = float(text)
        except ValueError:
            return
        if self.slider is not None and self.slider.props["min"] <= value <= self.slider.props["max"]:
            with self._silently():
                self.slider.set_value(value)

    def show(self, text: str) -> None:
        """Show a text that came from elsewhere."""
        if text != (self.element.value or ""):
            with self._silently():
                self.element.set_value(text)
        self._move_slider(text)


class Choice(_Input):
    """One of several values."""

    def __init__(
        self, name: str, label: str, options: dict[str, str], changed: Changed, *, about: str = ""
    ) -> None:
        super().__init__(name, changed)
        with self.box:
            self.element = ui.select(options, label=label, on_change=lambda event: self._entered(event.value))
            self.element.classes("w-full")
            self.element.props("dense outlined options-dense hide-bottom-space")
            self.element.props.update({"data-field": name, "title": about or None})
            self._write_label(label)

    def offer(self, options: dict[str, str]) -> None:
        """Take other values to choose from."""
        if options != self.element.options:
            with self._silently():
                self.element.set_options(options)

    def show(self, text: str) -> None:
        """Show a value that came from elsewhere."""
        with self._silently():
            self.element.set_value(text)


class _Picture(ui.plotly, component="picture.js"):
    """A figure of plotly, drawn in a frame of its own, and sent as one text: NiceGUI would watch each of its numbers."""

    def _get_figure_json(self) -> str:  # type: ignore[override]
        return dumps(self.figure)


class Plot:
    """A figure on the page, with its downloads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.figure: Figure | None = None
        with ui.card().classes("lab-card") as self.card:
            with ui.row().classes("w-full items-center no-wrap gap-1"):
                self.title = sentence(name).classes("text-subtitle2 grow").props("role=heading aria-level=2")
                button = ui.button(icon="download").props("flat dense round")
                button.props["aria-label"] = f"download {name}"
                with button, ui.menu():
                    for kind in ("pdf", "png", "csv"):
                        ui.menu_item(kind.upper(), lambda kind=kind: self._download(kind))
            with ui.element("div").classes("w-full lab-frame"):
                self.plot = _Picture({"data": [], "layout": {"height": 300}, "config": _CONFIG})
            self.plot.classes("w-full lab-picture").props("role=img")
            self.plot.props.update({"aria-label": name, "data-figure": name})
            self.caption = sentence("").classes("text-caption lab-caption")
        if height := RESERVED.get(name):
            self.plot.style(f"min-height: {height}px")
        self.card.set_visibility(bool(height))  # else when there is something to see

    def reserve(self, title: str, caption: str) -> None:
        """Take the place of the figure that will come, so that nothing moves then."""
        self._write(title, caption)
        self.card.set_visibility(True)

    def _write(self, title: str, caption: str) -> None:
        self.title.set_content(typeset(title))
        self.caption.set_content(typeset(caption))

    def show(self, figure: Figure, theme: Theme, **layout: Any) -> None:
        """Draw a figure, with more of plotly's layout."""
        self.figure = figure
        self.card.set_visibility(True)
        panel = figure.panels[0]
        if any(isinstance(one, Heatmap) and _has_names(one) for one in panel.traces):
            self.card.classes("lab-wide")
        drawn = plotly_panel(panel, theme)
        for name, value in {**_legend(drawn), **layout}.items():
            drawn["layout"][name] = (
                drawn["layout"].get(name, {}) | value if isinstance(value, dict) else value
            )
        title, caption = tex_to_text(figure.title), tex_to_text(figure.caption)
        self._write(title, caption)
        self.plot.props["aria-label"] = f"{title}. {caption}"
        self.plot.style(
            f"min-height: {drawn['layout']['height']}px"
        )  # so that the caption has its place at once
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


def _has_names(trace: Heatmap) -> bool:
    """Whether a heat map has more rows with names than fit beside other figures."""
    rows = trace.rows or ()
    return len(rows) > _NAMES and max(map(len, rows)) > _SHORT


def _legend(drawn: dict[str, Any]) -> dict[str, Any]:
    """Space below the axes for the legend, in as many rows as it needs on a narrow page."""
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
    """Computations of a window: a spinner, their progress, a button that stops them, and why one failed.

    Args:
        session: of the window.
        names: of the computations.
        cancelled: called after the button was pressed.
        retry: computes again.
    """

    def __init__(
        self,
        session: Session,
        *names: str,
        cancelled: Callable[[], None] = lambda: None,
        retry: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._session, self._names, self._cancelled, self._shown = session, names, cancelled, ""
        self._began: float | None = None
        session.watchers.append(self.refresh)
        with ui.row().classes("items-center gap-2 lab-work").props("role=status") as self.row:
            ui.spinner(size="sm")
            self.text = ui.label("")
            self.stop = ui.button("Cancel", on_click=self._cancel).props("flat dense no-caps")
        self.row.set_visibility(False)
        self.error = ui.label("").classes("lab-error").props("role=alert")
        self.error.set_visibility(False)
        self.retry = ui.button("Try again", on_click=retry).props("flat dense no-caps")
        self.retry.set_visibility(False)

    def refresh(self) -> None:
        """Show the progress of what lasts; the old figure stays meanwhile."""
        text = next(filter(None, map(self._session.progress.get, self._names)), "")
        now = time.monotonic()
        self._began = (self._began or now) if text else None
        if text != self._shown and (self._began is None or now - self._began >= _PATIENCE):
            self._shown = text
            self.text.set_text(text)
            self.row.set_visibility(bool(text))

    def show_error(self, message: str | None, *, retry: bool = False) -> None:
        """Show why it failed, or nothing; and a button that tries again, where that may help."""
        self.error.set_text(message or "")
        self.error.set_visibility(bool(message))
        self.retry.set_visibility(retry)

    def _cancel(self) -> None:
        for name in self._names:
            self._session.cancel(name)
        self._cancelled()

    async def compute(self, failure: str, pool: str = "quick", **arguments: Any) -> Any | None:
        """Return the first of the computations; None if it was cancelled or failed, which is shown after `failure`."""
        self.show_error(None)
        try:
            return await self._session.compute(self._names[0], pool, **arguments)
        except (SpecError, JobFailedError) as error:
            self.show_error(f"{failure}: {error}")
            return None


def draw_figures(figures: Iterable[tuple[str, Figure]], theme: Theme) -> None:
    """Draw every panel of figures by name, each with its own downloads."""
    for name, figure in figures:
        captions = _captions(figure)
        for number, panel in enumerate(figure.panels):
            own = {"panels": (panel,), "title": panel.title, "caption": captions[number]}
            single = figure.model_copy(update=own)
            numbered = f"-{number + 1}" if len(figure.panels) > 1 else ""
            Plot(f"{name.replace('/', '-')}{numbered}").show(single, theme)


def _captions(figure: Figure) -> list[str]:
    """The caption of every panel: where a caption says what is left and right, its part."""
    common, *parts = _PLACES.split(figure.caption)
    if len(parts) != len(figure.panels):
        return [figure.caption] * len(figure.panels)
    return [f"{common}{part[:1].upper()}{part[1:]}".strip() for part in parts]


def in_short(value: Any) -> str:
    """A value of a record in a line or two."""
    match value:
        case float():
            return f"{value:.8g}"
        case dict():
            return ", ".join(f"{name}: {_inside(one)}" for name, one in value.items())
        case [first, second, _, _, _, _, *_, last]:
            return f"{_inside(first)}, {_inside(second)}, …, {_inside(last)} ({len(value)} of them)"
        case list() | tuple():
            return ", ".join(map(_inside, value))
        case _:
            return str(value)


def _inside(value: Any) -> str:
    """A value in a list or mapping."""
    return f"[{in_short(value)}]" if isinstance(value, list | tuple | dict) else in_short(value)


def heading(text: str) -> ui.label:
    """A heading of a card."""
    return ui.label(text).classes("text-subtitle2").props("role=heading aria-level=2")


def sentence(text: str) -> ui.html:
    """A text of `theory` with subscripts and superscripts."""
    return ui.html(typeset(text), sanitize=False)  # `typeset` escapes everything else


def later(act: Awaitable[Any]) -> None:
    """Do something without waiting for it."""
    task = asyncio.ensure_future(act)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


_TASKS: set[Any] = set()  # an event loop keeps no task alive by itself
