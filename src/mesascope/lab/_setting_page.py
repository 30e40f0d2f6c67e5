"""What every page about a setting has: its form and address, and the computation of what it shows."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from weakref import WeakMethod

from nicegui import events, ui

from mesascope.specs import show
from mesascope.studies import FlowSpec, SpecError, parse_file

from ._compare_page import compare_address
from ._form import field_of
from ._frame import Frame
from ._jobs import JobFailedError
from ._session import Lab
from ._setting import DEFAULT, MAX_QUERY, MAX_START, read_setting, to_python, to_query, to_toml
from ._sizes import FRAMES
from ._widgets import Work

_COPY = "Copy the address"
_TOO_LONG = "Too long for an address: download the specification"
_BREATH = 0.004  # seconds in which what was drawn goes to the browser before more is
_PATIENCE = 0.15  # seconds that an old picture is not told apart from a new one
_NO_PART_OF_FACTS = {"solver": None, "until": None, "tolerance": None, "max_steps": None}

Draws = tuple[Callable[[], None], ...]
"""What draws the parts of a result; the browser shows each before the next is drawn."""
_Upload = Callable[[events.UploadEventArguments], Awaitable[None]]


class SettingPage(Frame):
    """One window that shows a setting.

    Attributes:
        theory: what dims while it is computed for another setting: as little as says that, for the browser computes the style
            of all that is in it, which takes longer than to draw a figure.
    """

    theory: ui.element
    _asked = 0  # changes of the form

    def __init__(self, lab: Lab, query: str) -> None:
        self._opening = ui.dialog()
        super().__init__(lab, query)
        with ui.element("div").classes("lab-status") as self.status:
            self.work = Work(self.session, "flow", "facts", cancelled=self._stopped, retry=self.update)
            self._notice = ui.label(self.session.notice).classes("lab-error").props("role=alert")
            self._notice.set_visibility(bool(self.session.notice))
        self.content = ui.element("div").classes("lab-content")
        with self.content:
            self.build()
        ui.on("lab_start", self.start_chosen)

    # What a page is made of

    @abstractmethod
    def build(self) -> None:
        """Make the elements of the page, `theory` among them."""

    @abstractmethod
    def show_form(self) -> None:
        """Show the texts of the form, which came from elsewhere, and its errors."""

    @abstractmethod
    def drawn(self) -> dict[str, Draws]:
        """Return what draws the results "facts" and "flow", the one that is wanted first before the other."""

    @abstractmethod
    def prepare(self, narrow: bool) -> None:
        """Do what needs the browser before anything is computed."""

    @abstractmethod
    async def finish(self) -> None:
        """Compute what follows once facts and flow are drawn."""

    @abstractmethod
    def clear(self) -> None:
        """Stop and remove what belongs to the setting before."""

    # The header

    def add_actions(self) -> None:
        """Add what is done with a setting: share it, keep it, open another."""
        with ui.button("Share", icon="share").props("flat no-caps color=white"), ui.menu():
            with ui.menu_item(on_click=self._copy_address):
                self._copying = ui.item_section(_COPY)
            ui.menu_item("Download the specification", self.download_spec)
            ui.menu_item("Download the Python program", self._download_python)
            ui.menu_item("Compare with another setting", self._compare)
            ui.menu_item("Open a specification …", lambda: self._opening.open())
        with self._opening, ui.card():
            ui.label("A TOML or JSON file, as for mesascope flow")
            ui.upload(on_upload=_weak(self._upload), auto_upload=True, max_file_size=2**20).props(
                'accept=".toml,.json" label="specification"'
            )

    def _copy_address(self) -> None:
        if self._copying.text == _TOO_LONG:
            self.download_spec()
            return
        ui.run_javascript("navigator.clipboard.writeText(location.href)")
        ui.notify("The address of this setting was copied.")

    def _compare(self) -> None:
        ui.navigate.to(compare_address(self.links[self.path].props["href"]), new_tab=True)

    def download_spec(self) -> None:
        """Send the setting as a file for `mesascope flow`."""
        ui.download.content(to_toml(self.session.spec), "spec.toml")

    def _download_python(self) -> None:
        results = self.session.results
        train, identify = (results.get(name, {}).get("arguments") for name in ("descent", "identification"))
        frame = results.get("frame", FRAMES - 1)
        text = to_python(self.session.spec, train, identify, None if frame == FRAMES - 1 else frame)
        ui.download.content(text, "view.py")

    async def begin(self, narrow: bool) -> None:
        """Compute and draw."""
        self.prepare(narrow)
        await self.update()

    # Changes of the setting

    def changed(self, name: str, text: str) -> Awaitable[None]:
        """Take a text at once: a coroutine would take it later, and show the old text meanwhile."""
        self.session.form[name] = text
        self._asked += 1
        return self._read_form(self._asked)

    async def _read_form(self, asked: int) -> None:
        await asyncio.sleep(0)
        if asked != self._asked:  # of many changes at once the last is read
            return
        changed = await self.session.read_form()
        self.show_form()
        if changed:
            await self.update()

    def start_chosen(self, event: events.GenericEventArguments) -> Awaitable[None] | None:
        """Take a start that was chosen on the plane of a and b."""
        point = event.args if isinstance(event.args, dict) else {}
        a, b = point.get("a"), point.get("b")
        if not all(isinstance(x, int | float) and abs(x) < MAX_START for x in (a, b)):
            return None
        self.session.form |= {"init.a": f"{a:.3g}", "init.b": f"{b:.3g}"}
        return self.changed("init.kind", "diagonal")

    async def _upload(self, event: events.UploadEventArguments) -> None:
        self._opening.close()
        content = await event.file.read()
        try:
            spec = await asyncio.to_thread(lambda: read_setting(parse_file(content)))
        except (SpecError, ValueError) as error:
            ui.notify(f"{show(event.file.name)}: {error}", type="negative", multi_line=True)
            return
        await self.replace(spec)

    async def replace(self, spec: FlowSpec) -> None:
        """Take another setting as a whole."""
        self.session.replace(spec)
        self.show_form()
        await self.update()

    # Results

    async def update(self) -> None:
        """Compute and draw the setting; results for the setting before are dropped."""
        session = self.session
        session.drop("facts", "flow")
        self.clear()
        self.work.show_error(None)
        waiting = asyncio.create_task(self._announce(session.spec))
        specs = {"flow": session.spec, "facts": _without_start(session.spec)}
        follow = (
            self._follow(session.spec, name, specs[name], draws) for name, draws in self.drawn().items()
        )
        if all(await asyncio.gather(*follow)):
            self.theory.classes(remove="lab-stale")
            await self.finish()
        await waiting

    def _shows(self, setting: FlowSpec) -> bool:
        """Whether the window is there and the setting is still its own."""
        return setting is self.session.spec and not self.session.closed

    async def _announce(self, setting: FlowSpec) -> None:
        """Show the address of a setting, and dim what is not computed for it: not before the answer to a slider is drawn."""
        await asyncio.sleep(_PATIENCE)
        if not self._shows(setting):
            return
        with self.content:
            self._show_address()
        if any(self.session.current(name) is None for name in ("facts", "flow")):
            self.theory.classes(add="lab-stale")

    async def _follow(self, setting: FlowSpec, name: str, spec: FlowSpec, draws: Draws) -> bool:
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
        if result is before:  # a slider of the start leaves the facts as they are
            return True
        for draw in draws:
            with self.content:
                draw()
            await asyncio.sleep(_BREATH)
            if not self._shows(setting):
                return False
        return True

    def _show_error(self, error: Exception) -> None:
        if isinstance(error, SpecError):
            self.session.fail(error)
            self.show_form()
            place = field_of(error, self.session.form)
            self.work.show_error(f"{place}: {error.what}")
        else:
            self.work.show_error(str(error), retry=True)

    def _show_address(self) -> None:
        query = to_query(self.session.spec)
        fits = len(query) <= MAX_QUERY
        self._copying.set_text(_COPY if fits else _TOO_LONG)
        address = f"?{query}" if fits else "?"
        ui.run_javascript(f"history.replaceState(null, '', {address!r})")
        for path in ("/", "/expert"):
            self.links[path].props["href"] = path + address
        self.links["/compare"].props["href"] = compare_address(self.path + address)

    def _stopped(self) -> None:
        drawn = "flow" in self.session.results
        state = "the flow that is drawn belongs to the setting before" if drawn else "no flow is drawn yet"
        self.work.show_error(f"Stopped: {state}.", retry=True)


def _weak(upload: _Upload) -> _Upload:
    """Return a handler that does not keep its page: FastAPI remembers the route of every uploader, and this its handler."""
    method: Callable[[], _Upload | None] = WeakMethod(upload)

    async def handle(event: events.UploadEventArguments) -> None:
        if alive := method():
            await alive(event)

    return handle


def _without_start(spec: FlowSpec) -> FlowSpec:
    """The part of a setting that facts depend on: all settings that differ in the rest share them."""
    return spec.model_copy(update={"init": read_setting(DEFAULT).init, **_NO_PART_OF_FACTS})
