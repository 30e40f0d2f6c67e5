"""The page: the form at the side, four panels, and what joins them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nicegui import events, ui

from mesascope.report import DARK, LIGHT
from mesascope.studies import FlowSpec, SpecError, read_spec

from ._claims_panel import ClaimsPanel
from ._data_panel import DataPanel
from ._form import field_of
from ._form_panel import FormPanel
from ._jobs import JobFailedError
from ._mind_panel import MindPanel
from ._session import Lab, Session
from ._setting import (
    DEFAULT,
    LONGEST_QUERY,
    MOST_START,
    plain_setting,
    read_setting,
    to_python,
    to_query,
    to_toml,
)
from ._training_panel import TrainingPanel
from ._widgets import Work, later

_COPY = "Copy the address"
_TOO_LONG = "Too long for an address: download the specification"
_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_TABS = ("Data", "Training", "Mind", "Claims")
_LOOKS = "[matchMedia('(prefers-color-scheme: dark)').matches, innerWidth <= 900]"
_FACTS = {"law", "dim", "horizon", "weights", "rho", "mask"}
# Whoever chose a theme by the button keeps it; else figures follow the system, as the rest of the page does by itself.
_FOLLOW_SYSTEM = """
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('lab_dark', event.matches))
"""
# Arrow keys go through the menu that has the focus; those of selects, whose fields keep it, are Quasar's own.
_MENU_KEYS = """
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.(".q-menu"), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!menu || !step) return;
  event.preventDefault();
  const items = [...menu.querySelectorAll(".q-item")], at = items.indexOf(event.target);
  items.at(at < 0 && step > 0 ? 0 : (Math.max(at, 0) + step) % items.length).focus();
});
"""


class Page:
    """One window."""

    def __init__(self, lab: Lab, query: str) -> None:
        self.session = Session(lab, query)
        self._opening = ui.dialog()
        ui.add_css(_STYLE)
        ui.colors(primary="#0b4f8a")
        self._dark = ui.dark_mode(None)
        self._header()
        with ui.element("div").classes("lab-page"):
            with ui.element("section").classes("lab-side").props('aria-label="setting"'):
                self._form = FormPanel(self.session.form, self._changed)
            with ui.element("div").classes("lab-main"):
                self._panels()
        ui.on("lab_start", self._drawn)
        ui.on("lab_dark", self._system_theme)
        ui.timer(0.15, self._look)

    def _header(self) -> None:
        with ui.header().classes("items-center gap-2 lab-header"):
            ui.label("mesascope lab").classes("text-h6").props("role=heading aria-level=1")
            ui.space()
            with ui.button("Share", icon="share").props("flat no-caps color=white"), ui.menu():
                with ui.menu_item(on_click=self._copy_address):
                    self._copying = ui.item_section(_COPY)
                ui.menu_item("Download the specification", self._download_spec)
                ui.menu_item("Download the Python program", self._download_python)
                ui.menu_item("Open a specification …", lambda: self._opening.open())
            button = ui.button(icon="contrast", on_click=self._switch_theme)
            button.props('flat round color=white aria-label="light or dark"')
        with self._opening, ui.card():
            ui.label("A TOML or JSON file, as for mesascope flow")
            ui.upload(on_upload=self._upload, auto_upload=True, max_file_size=2**20).props(
                'accept=".toml,.json" label="specification"'
            )

    def _panels(self) -> None:
        self.work = Work(self._computing, self._cancel, self.update)
        self._notice = ui.label(self.session.notice).classes("lab-trouble").props("role=alert")
        self._notice.set_visibility(bool(self.session.notice))
        with ui.tabs(on_change=self._turned).props("no-caps align=left") as self._tabs:
            for name in _TABS:
                ui.tab(name)
        with ui.tab_panels(self._tabs, value="Data", animated=False).classes("w-full lab-panels"):
            with ui.tab_panel("Data"):
                self._data = DataPanel(self.session)
            with ui.tab_panel("Training"):
                self._training = TrainingPanel(self.session)
            with ui.tab_panel("Mind"):
                self._mind = MindPanel(self.session)
            with ui.tab_panel("Claims"):
                self._claims = ClaimsPanel(self.session)

    async def start(self) -> None:
        """Compute and draw, once the window is there."""
        try:
            looks = await ui.run_javascript(_LOOKS, timeout=10)
        except TimeoutError:  # a browser with much to do
            looks = (False, False)
        if looks is None:  # it was closed at once, or asked for by something that is no browser
            return
        dark, narrow = looks
        if narrow:
            self._form.fold()
        self._recolour(dark)
        self._training.prepare()
        ui.run_javascript(_FOLLOW_SYSTEM + _MENU_KEYS)
        await self.update()

    # What happens to the setting

    def _changed(self, name: str, text: str) -> Awaitable[None]:
        """Take a text at once: a coroutine would take it later, and show in between what stood there before."""
        self.session.form[name] = text
        return self._read_form()

    async def _read_form(self) -> None:
        changed = await self.session.read_form()
        self._form.show(self.session.form, self.session.wrong)
        if changed:
            await self.update()

    def _drawn(self, event: events.GenericEventArguments) -> Awaitable[None] | None:
        """A start drawn by hand on the plane of a and b."""
        point = event.args if isinstance(event.args, dict) else {}
        a, b = point.get("a"), point.get("b")
        if not all(isinstance(x, int | float) and abs(x) < MOST_START for x in (a, b)):
            return None
        self.session.form |= {"init.a": f"{a:.3g}", "init.b": f"{b:.3g}"}
        return self._changed("init.kind", "diagonal")

    async def _upload(self, event: events.UploadEventArguments) -> None:
        self._opening.close()
        content = await event.file.read()
        try:
            spec = await asyncio.to_thread(lambda: read_setting(plain_setting(_parsed(content))))
        except (SpecError, ValueError) as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        self.session.replace(spec)
        self._form.show(self.session.form, {})
        await self.update()

    async def update(self) -> None:
        """Compute and draw what the setting asks for; what was asked before counts no more."""
        session = self.session
        self._address()
        session.drop("facts", "flow")
        session.cancel("train")  # that hears nothing between points of its path, which may be far apart
        session.results.pop("train", None)
        self._mind.forget()
        self.work.complain(None)
        tasks = [
            ("flow", session.setting, self._training.draw),
            ("facts", _without_start(session.setting), self._data.draw),
        ]
        if self._tabs.value == "Data":  # what is looked at goes first
            tasks.reverse()
        drawn = await asyncio.gather(*(self._follow(session.spec, *task) for task in tasks))
        if all(drawn) and self._tabs.value == "Mind":
            await self._mind.measure()

    async def _follow(
        self, setting: FlowSpec, name: str, asked: dict[str, Any], draw: Callable[[], None]
    ) -> bool:
        """Compute and draw one thing of a setting; whether that was done while it still stood."""
        session = self.session
        if setting is not session.spec:  # tasks begin later
            return False
        before = session.results.get(name)
        try:
            result = await session.compute(name, setting=asked)
        except (SpecError, JobFailedError) as error:
            if setting is session.spec:
                session.drop("facts", "flow")
                self._complain(error)
            return False
        if result is None or setting is not session.spec:
            return False
        if result is not before:  # a slider of the start leaves the facts as they are
            with self._tabs:
                draw()
        return True

    def _complain(self, error: Exception) -> None:
        if isinstance(error, SpecError):
            self.session.fail(error)
            self._form.complain(self.session.wrong)
            place = field_of(error, self.session.form)
            self.work.complain(f"{place}: {error.what}")
        else:
            self.work.complain(str(error), again=True)

    def _address(self) -> None:
        query = to_query(self.session.spec)
        fits = len(query) <= LONGEST_QUERY
        self._copying.set_text(_COPY if fits else _TOO_LONG)
        address = f"?{query}" if fits else "?"
        ui.run_javascript(f"history.replaceState(null, '', {address!r})")

    # What the header offers

    def _copy_address(self) -> None:
        if self._copying.text == _TOO_LONG:
            self._download_spec()
            return
        ui.run_javascript("navigator.clipboard.writeText(location.href)")
        ui.notify("The address of this setting was copied.")

    def _download_spec(self) -> None:
        ui.download.content(to_toml(self.session.spec), "spec.toml")

    def _download_python(self) -> None:
        asked = (self.session.results.get(name, {}).get("asked") for name in ("train", "ask"))
        ui.download.content(to_python(self.session.spec, *asked), "view.py")

    def _switch_theme(self) -> None:
        dark = self.session.theme is LIGHT
        self._dark.set_value(dark)
        self._recolour(dark)

    def _system_theme(self, event: events.GenericEventArguments) -> None:
        if self._dark.value is None:
            self._recolour(bool(event.args))

    def _recolour(self, dark: bool) -> None:
        self.session.recolour(DARK if dark else LIGHT)
        for panel in (self._data, self._training, self._mind, self._claims):
            panel.draw()

    # What goes on

    def _turned(self, event: Any) -> None:
        if event.value == "Mind":
            later(self._within(self._mind.measure))
        elif event.value == "Claims":
            later(self._within(self._claims.open))

    async def _within(self, act: Any) -> None:
        with self._tabs:
            await act()

    def _computing(self) -> str | None:
        return self.session.busy.get("flow") or self.session.busy.get("facts")

    def _cancel(self) -> None:
        for name in ("flow", "facts"):
            self.session.cancel(name)
        drawn = "flow" in self.session.results
        told = "the flow that is drawn belongs to the setting before" if drawn else "no flow is drawn yet"
        self.work.complain(f"Stopped: {told}.", again=True)

    def _look(self) -> None:
        for work in (
            self.work,
            self._training.work,
            self._mind.measuring,
            self._mind.work,
            self._claims.loading,
            self._claims.work,
        ):
            work.look()


def _without_start(setting: dict[str, Any]) -> dict[str, Any]:
    """What facts depend on: another start is no other question."""
    return {**{name: value for name, value in setting.items() if name in _FACTS}, "init": DEFAULT["init"]}


def _parsed(content: bytes) -> FlowSpec:
    """A specification from what stands in a file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "specification"
        path.write_bytes(content)
        try:
            return read_spec(path, FlowSpec)
        except SpecError as error:
            raise SpecError(error.what, error.path) from None
