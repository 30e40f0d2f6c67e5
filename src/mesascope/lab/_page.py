"""The page: the form at the side, four panels, and what connects them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nicegui import events, ui

from mesascope.report import DARK, LIGHT
from mesascope.studies import FlowSpec, SpecError, parse_file

from ._behaviour_panel import BehaviourPanel
from ._claims_panel import ClaimsPanel
from ._data_panel import DataPanel
from ._form import field_of
from ._form_panel import FormPanel
from ._jobs import JobFailedError
from ._session import Lab, Session
from ._setting import DEFAULT, MAX_QUERY, MAX_START, read_setting, to_python, to_query, to_toml
from ._training_panel import TrainingPanel
from ._widgets import Work, later

_COPY = "Copy the address"
_TOO_LONG = "Too long for an address: download the specification"
_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_BEHAVIOUR = "In-context behaviour"
_TABS = ("Data", "Training", _BEHAVIOUR, "Claims")
_WINDOW = "[matchMedia('(prefers-color-scheme: dark)').matches, innerWidth <= 900]"
_NO_PART_OF_FACTS = {"solver": None, "until": None, "tolerance": None, "max_steps": None}
# Until a theme is chosen by the button, figures follow the system, as the rest of the page does by itself.
_FOLLOW_SYSTEM = """
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => emitEvent('lab_dark', event.matches))
"""
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


class Page:
    """One window."""

    _asked = 0  # changes of the form

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
        ui.on("lab_start", self._start_chosen)
        ui.on("lab_dark", self._system_theme)
        ui.timer(0.15, self._refresh)

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
        self.work = Work(self.session, "flow", "facts", cancelled=self._stopped, retry=self.update)
        self._notice = ui.label(self.session.notice).classes("lab-error").props("role=alert")
        self._notice.set_visibility(bool(self.session.notice))
        with ui.tabs(on_change=self._opened).props("no-caps align=left") as self._tabs:
            for name in _TABS:
                ui.tab(name)
        with ui.tab_panels(self._tabs, value="Data", animated=False).classes("w-full lab-panels"):
            with ui.tab_panel("Data"):
                self._data = DataPanel(self.session)
            with ui.tab_panel("Training"):
                self._training = TrainingPanel(self.session)
            with ui.tab_panel(_BEHAVIOUR):
                self._behaviour = BehaviourPanel(self.session)
            with ui.tab_panel("Claims"):
                self._claims = ClaimsPanel(self.session)

    async def start(self) -> None:
        """Compute and draw, once the window is there."""
        try:
            window = await ui.run_javascript(_WINDOW, timeout=10)
        except TimeoutError:  # a busy browser
            window = (False, False)
        if window is None:  # it was closed at once, or is no browser
            return
        dark, narrow = window
        if narrow:
            self._form.fold()
        self._recolour(dark)
        self._training.prepare()
        ui.run_javascript(_FOLLOW_SYSTEM + _MENU_KEYS)
        await self.update()

    # Changes of the setting

    def _changed(self, name: str, text: str) -> Awaitable[None]:
        """Take a text at once: a coroutine would take it later, and show the old text meanwhile."""
        self.session.form[name] = text
        self._asked += 1
        return self._read_form(self._asked)

    async def _read_form(self, asked: int) -> None:
        await asyncio.sleep(0)
        if asked != self._asked:  # of many changes at once the last is read
            return
        changed = await self.session.read_form()
        self._form.show(self.session.form, self.session.errors)
        if changed:
            await self.update()

    def _start_chosen(self, event: events.GenericEventArguments) -> Awaitable[None] | None:
        """Take a start that was chosen on the plane of a and b."""
        point = event.args if isinstance(event.args, dict) else {}
        a, b = point.get("a"), point.get("b")
        if not all(isinstance(x, int | float) and abs(x) < MAX_START for x in (a, b)):
            return None
        self.session.form |= {"init.a": f"{a:.3g}", "init.b": f"{b:.3g}"}
        return self._changed("init.kind", "diagonal")

    async def _upload(self, event: events.UploadEventArguments) -> None:
        self._opening.close()
        content = await event.file.read()
        try:
            spec = await asyncio.to_thread(lambda: read_setting(parse_file(content)))
        except (SpecError, ValueError) as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        self.session.replace(spec)
        self._form.show(self.session.form, {})
        await self.update()

    async def update(self) -> None:
        """Compute and draw the setting; results for the setting before are dropped."""
        session = self.session
        self._address()
        session.drop("facts", "flow")
        session.cancel(
            "descent"
        )  # which reports, and stops, only at points of its path that may be far apart
        session.results.pop("descent", None)
        self._behaviour.clear()
        self.work.show_error(None)
        tasks = [
            ("flow", session.spec, self._training.draw),
            ("facts", _without_start(session.spec), self._data.draw),
        ]
        if self._tabs.value == "Data":  # the open panel goes first
            tasks.reverse()
        drawn = await asyncio.gather(*(self._follow(session.spec, *task) for task in tasks))
        if all(drawn) and self._tabs.value == _BEHAVIOUR:
            await self._behaviour.measure()

    async def _follow(self, setting: FlowSpec, name: str, spec: FlowSpec, draw: Callable[[], None]) -> bool:
        """Compute and draw one result of a setting; return whether it was drawn before the setting changed."""
        session = self.session
        if setting is not session.spec:  # tasks begin later
            return False
        before = session.results.get(name)
        try:
            result = await session.compute(name, spec=spec)
        except (SpecError, JobFailedError) as error:
            if setting is session.spec:
                session.drop("facts", "flow")
                self._show_error(error)
            return False
        if result is None or setting is not session.spec:
            return False
        if result is not before:  # a slider of the start leaves the facts as they are
            with self._tabs:
                draw()
        return True

    def _show_error(self, error: Exception) -> None:
        if isinstance(error, SpecError):
            self.session.fail(error)
            self._form.show_errors(self.session.errors)
            place = field_of(error, self.session.form)
            self.work.show_error(f"{place}: {error.what}")
        else:
            self.work.show_error(str(error), retry=True)

    def _address(self) -> None:
        query = to_query(self.session.spec)
        fits = len(query) <= MAX_QUERY
        self._copying.set_text(_COPY if fits else _TOO_LONG)
        address = f"?{query}" if fits else "?"
        ui.run_javascript(f"history.replaceState(null, '', {address!r})")

    # The header

    def _copy_address(self) -> None:
        if self._copying.text == _TOO_LONG:
            self._download_spec()
            return
        ui.run_javascript("navigator.clipboard.writeText(location.href)")
        ui.notify("The address of this setting was copied.")

    def _download_spec(self) -> None:
        ui.download.content(to_toml(self.session.spec), "spec.toml")

    def _download_python(self) -> None:
        results = (self.session.results.get(name, {}) for name in ("descent", "identification"))
        arguments = (result.get("arguments") for result in results)
        ui.download.content(to_python(self.session.spec, *arguments), "view.py")

    def _switch_theme(self) -> None:
        dark = self.session.theme is LIGHT
        self._dark.set_value(dark)
        self._recolour(dark)

    def _system_theme(self, event: events.GenericEventArguments) -> None:
        if self._dark.value is None:
            self._recolour(bool(event.args))

    def _recolour(self, dark: bool) -> None:
        self.session.theme = DARK if dark else LIGHT
        for panel in (self._data, self._training, self._behaviour, self._claims):
            panel.draw()

    # Panels and progress

    def _opened(self, event: Any) -> None:
        if event.value == _BEHAVIOUR:
            later(self._within(self._behaviour.measure))
        elif event.value == "Claims":
            later(self._within(self._claims.open))

    async def _within(self, act: Any) -> None:
        with self._tabs:
            await act()

    def _stopped(self) -> None:
        drawn = "flow" in self.session.results
        state = "the flow that is drawn belongs to the setting before" if drawn else "no flow is drawn yet"
        self.work.show_error(f"Stopped: {state}.", retry=True)

    def _refresh(self) -> None:
        for refresh in self.session.watchers:
            refresh()


def _without_start(spec: FlowSpec) -> FlowSpec:
    """The part of a setting that facts depend on: all settings that differ in the rest share them."""
    return spec.model_copy(update={"init": read_setting(DEFAULT).init, **_NO_PART_OF_FACTS})
