"""The page that opens first: six steps, from the data to the reason why the answer is one fifth of the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nicegui import ui

from mesascope.lab._behaviour_panel import SIX_LEARNERS, show_table, weights_at
from mesascope.lab._claims_page import FINDINGS, FINDINGS_ADDRESS
from mesascope.lab._figures import phase_reach
from mesascope.lab._form import form_of, kind_title, setting_fields, setting_of
from mesascope.lab._jobs import JobFailedError
from mesascope.lab._session import Lab
from mesascope.lab._setting import DEFAULT, read_setting
from mesascope.lab._setting_page import Draws, SettingPage
from mesascope.lab._sizes import IDENTIFY_TASKS
from mesascope.lab._widgets import Slider, Work, later, sentence
from mesascope.lab._words import conclusions
from mesascope.report import tex_to_text
from mesascope.specs import known_kinds, summary
from mesascope.studies import FlowSpec, SpecError

from ._drawings import PoolDrawing, RatioDrawing, RideDrawing, TokenDrawing, ratio_data, ride_data, token_data
from ._glossary import glossed
from ._notebook import to_notebook
from ._pictures import histogram, model
from ._pools import POOL, pool_answer, pool_data
from ._presets import PRESETS, Preset, Question
from ._words import (
    CANDIDATES,
    INTRODUCTION,
    LAWS,
    MORE,
    QUESTION,
    STEPS,
    WHICH_LAWS,
    compared,
    formula,
    notes,
    result_sentence,
    why_longer,
    why_sentence,
    why_title,
)

_STYLE = (Path(__file__).parent / "story.css").read_text(encoding="utf-8")
_SLIDERS = {
    "horizon": ("T", "tokens in a sequence"),
    "dim": ("d", "coordinates of a token"),
}  # fields: their symbols, and what they count
_UNANSWERED = "The answer appears here."
_PAUSE = 0.3  # seconds without a change before what follows from the flow is computed


class Guess(NamedTuple):
    """What was guessed, and the setting that decides it."""

    preset: Preset
    number: int
    spec: FlowSpec


class StoryPage(SettingPage):
    """One window that tells the story of a setting."""

    path = "/"

    def __init__(self, lab: Lab, query: str) -> None:
        self._guess: Guess | None = None
        self._titles: dict[str, ui.label] = {}
        self._thumbnails: dict[str, ui.html] = {}
        self._options: dict[str, list[ui.button]] = {}  # of a question
        self._before: FlowSpec | None = (
            None  # the setting before a preset, or before all tokens were made one size
        )
        ui.add_css(_STYLE)
        super().__init__(lab, query)

    def build(self) -> None:
        """Make the six steps."""
        steps = {
            "data": self._data,
            "model": self._model,
            "train": self._train,
            "result": self._result,
            "why": self._why,
            "break": self._break,
        }
        with ui.element("article").classes("story") as self.theory:
            ui.label(QUESTION).classes("story-question").props("role=heading aria-level=2")
            _text(INTRODUCTION)
            ui.link(FINDINGS, FINDINGS_ADDRESS)
            for name, fill in steps.items():
                self._step(name, fill)
        self.show_form()

    def _step(self, name: str, fill: Callable[[], None]) -> None:
        title, text = STEPS[name]
        section = ui.element("section").classes("story-step")
        section.props.update({"id": name, "data-step": name})
        with section:
            self._titles[name] = ui.label(title).classes("story-title").props("role=heading aria-level=3")
            if text:
                _text(text)
            fill()
            with ui.row().classes("story-doors"):
                _button("Expert", lambda: ui.navigate.to(self.links["/expert"].props["href"]))
                _button("Notebook", lambda: self._download(name))
                _button("Specification", self.download_spec)

    def _download(self, step: str) -> None:
        ui.download.content(to_notebook(self.session.spec, step), f"{step}.ipynb")

    # The steps

    def _data(self) -> None:
        with ui.element("div").classes("story-data"):
            self._token = TokenDrawing()
            with ui.element("div"):
                _text(LAWS)
                self._choices()
        with ui.expansion("What theory says about this law").classes("story-fold"):
            self._theory = ui.column().classes("gap-1")

    def _choices(self) -> None:
        laws = ui.element("div").classes("story-laws").props('role=group aria-label="law of the first token"')
        with laws:
            self._laws = {kind: self._law(kind, kind_title(cls)) for kind, cls in known_kinds("law").items()}
        with ui.row().classes("story-sliders"):
            self._sliders = {name: self._slider(name) for name in _SLIDERS}

    def _law(self, kind: str, title: str) -> ui.element:
        button = ui.element("button").classes("story-law").props("type=button")
        button.props.update({"data-law": kind, "title": tex_to_text(summary(known_kinds("law")[kind]))})
        button.on("click", lambda: self.changed("law.kind", kind))
        with button:
            self._thumbnails[kind] = ui.html("", sanitize=False).classes("story-thumbnail")
            ui.label(title)
        return button

    def _slider(self, name: str) -> tuple[Slider, ui.html]:
        field = setting_fields()[name]
        ends = field.editor.slider(field.example)
        assert ends is not None  # both are whole numbers with a range
        low, high, step = ends
        with ui.column().classes("story-slider"):
            label = ui.html("", sanitize=False)
            slider = Slider(
                min=low, max=high, step=step, value=low, on_change=lambda event: self._slid(name, event.value)
            )
            slider.props("dense").props.update({"aria-label": field.label, "data-slider": name})
        return slider, label

    def _slid(self, name: str, value: float) -> Awaitable[None] | None:
        shown = self._on_slider(name)  # not what the server itself has set
        return None if value == shown else self.changed(name, f"{value:.0f}")

    def _on_slider(self, name: str) -> float:
        """The value of a field, or the end of its slider that is next to it."""
        ends = self._sliders[name][0].props
        return min(max(float(self.session.form[name]), ends["min"]), ends["max"])

    def _model(self) -> None:
        ui.html(model(), sanitize=False).classes("story-picture")
        self._formula = _text(formula(self.session.spec.rho)).classes("story-formula")

    def _train(self) -> None:
        self._ride = RideDrawing()
        self._ride.on("start", self.start_chosen)

    def _result(self) -> None:
        self._sentence = _text("").classes("story-sentence", remove="story-text")
        self._sentence.props('data-fact="result" aria-live=polite')
        with self.status:
            self._identifying = Work(self.session, "identification")
        with ui.expansion("How do we know? The algorithms compared, and how far each is").classes(
            "story-fold"
        ):
            self._table = ui.column().classes("w-full gap-1")

    def _why(self) -> None:
        self._reason = _text("").props('data-fact="why"')
        self._ratio = RatioDrawing()
        with self.status:
            self._measuring = Work(self.session, "behaviour")
        with ui.expansion("And trained on ever longer sequences?").classes("story-fold"):
            self._longer = _text("")
        _text(WHICH_LAWS)
        with ui.row().classes("story-doors"):
            _button("Make all tokens one size", self._make_one_size).props(
                'data-act="one-size" outline', remove="flat"
            )
            self._undo = _button("Back to the setting before", self._go_back).props(
                'data-act="undo" outline', remove="flat"
            )
            self._undo.set_visibility(False)

    def _break(self) -> None:
        with ui.element("div").classes("story-presets"):
            self._answers = {preset.id: self._ask(preset, partial(self._try, preset)) for preset in PRESETS}
        with ui.element("div").classes("story-preset story-pool"):
            self._answers[POOL.id] = self._ask(POOL, self._try_pool)
            self._pool = PoolDrawing()
        with self.status:
            self._pooling = Work(self.session, "pools")

    def _ask(self, asked: Question, act: Callable[[int], Any]) -> ui.html:
        """Ask, and return the place of the answer."""
        card = "story-preset" if isinstance(asked, Preset) else ""
        box = ui.element("div").classes(card)
        box.props["data-preset"] = asked.id
        with box:
            ui.label(asked.title).classes("story-preset-title").props("role=heading aria-level=4")
            _glossed(asked.question)
            with ui.row().classes("story-doors"):
                options = [
                    _button(option, partial(act, number)).props("outline", remove="flat")
                    for number, option in enumerate(asked.options)
                ]
            self._options[asked.id] = options
            return sentence(_UNANSWERED).classes("story-answer").props("aria-live=polite")

    def _mark(self, asked: str, chosen: int | None) -> None:
        """Mark the option of a question that was chosen, and no other."""
        for number, button in enumerate(self._options[asked]):
            button.props.update({"aria-pressed": str(number == chosen).lower()})
            button.update()

    # What is drawn

    def drawn(self) -> dict[str, Draws]:
        """Facts first: they draw the first step."""
        return {"facts": (self._draw_facts,), "flow": (self._draw_flow,)}

    def redraw(self) -> None:
        """Nothing: colours of the story are those of its style sheet."""

    def prepare(self, narrow: bool) -> None:
        """Draw the laws to choose from, each as soon as it is computed."""
        self.session.watchers.append(lambda: self._show_laws(self.session.points.get("laws", ())))
        later(self._draw_laws())

    def show_form(self) -> None:
        """Show sliders and law of the setting."""
        form = self.session.form
        for name, (slider, label) in self._sliders.items():
            slider.set_value(self._on_slider(name))
            symbol, counted = _SLIDERS[name]
            label.set_content(glossed(f"[[{symbol}]] = {form[name]} {counted}"))
        for kind, button in self._laws.items():
            button.props["aria-pressed"] = str(kind == form["law.kind"]).lower()
        self._formula.set_content(glossed(formula(self.session.spec.rho)))
        errors = self.session.errors.items()
        self.work.show_error("; ".join(f"{place}: {what}" for place, what in errors) or None)

    async def _draw_laws(self) -> None:
        try:
            laws = await self.session.compute("laws")
        except (SpecError, JobFailedError):
            return  # they can be chosen without a picture
        self._show_laws((laws or {}).items())

    def _show_laws(self, found: Iterable[tuple[str, list[int]]]) -> None:
        for kind, counts in found:
            if not self._thumbnails[kind].content:
                self._thumbnails[kind].set_content(histogram(counts))

    def _draw_facts(self) -> None:
        facts = self.session.results["facts"]
        self._token.show(token_data(facts))
        self._theory.clear()
        with self._theory:
            for line in conclusions(facts):
                _glossed(line)
        self._reason.set_content(glossed(why_sentence(facts)))
        self._longer.set_content(glossed(why_longer(facts)))
        self._titles["why"].set_text(why_title(facts))

    def _draw_flow(self) -> None:
        flow = self.session.results["flow"]
        self._ride.show(ride_data(flow, phase_reach(flow)))
        self._sentence.set_content(glossed(result_sentence(flow, None)))

    def clear(self) -> None:
        """Dim and drop what belongs to the setting before."""
        self._ratio.classes(add="lab-stale")
        for name in ("behaviour", "identification"):
            self.session.drop(name)
            self.session.results.pop(name, None)
        self._table.clear()
        if self._guess is not None and self._guess.spec is not self.session.spec:
            self._forget_guess()

    def _forget_guess(self) -> None:
        """Ask the question again whose answer is no longer computed."""
        if self._guess is not None:
            self._answers[self._guess.preset.id].set_content(_UNANSWERED)
            self._mark(self._guess.preset.id, None)
            self._guess = None

    async def finish(self) -> None:
        """Measure the layer and identify what it runs, once the setting stays as it is."""
        setting, flow = self.session.spec, self.session.results["flow"]
        await asyncio.sleep(_PAUSE)
        if setting is self.session.spec:
            await asyncio.gather(self._measure(setting, flow), self._identify(setting, flow))
        if setting is self.session.spec:
            self._show_answer()

    async def _measure(self, setting: FlowSpec, flow: dict[str, Any]) -> None:
        found = await self._measuring.compute("It could not be measured", spec=setting, **weights_at(flow))
        if found is not None and setting is self.session.spec:
            self._ratio.show(ratio_data(self.session.results["facts"], flow, found))
            self._ratio.classes(remove="lab-stale")

    async def _identify(self, setting: FlowSpec, flow: dict[str, Any]) -> None:
        arguments = {"learners": SIX_LEARNERS, "tasks": IDENTIFY_TASKS, **weights_at(flow)}
        answer = await self._identifying.compute("It cannot be identified", "slow", spec=setting, **arguments)
        if answer is None or setting is not self.session.spec:
            return
        self._sentence.set_content(glossed(result_sentence(flow, answer)))
        with self._table:
            _text(CANDIDATES)
            show_table(("algorithm", "misses", "fitted"), compared(answer))
            for note in (*notes(answer), MORE):
                ui.label(note)

    # Other settings

    async def _make_one_size(self) -> None:
        facts = self.session.results.get("facts")
        size = facts["moments"]["m2"][0] ** 0.5 if facts else 0.0
        self._before = self._before or self.session.spec
        self._undo.set_visibility(True)
        form = {**self.session.form, "law.kind": "rademacher", "law.scale": f"{size or 1.0:.4g}"}
        await self.replace(setting_of(form))

    async def _try(self, preset: Preset, number: int) -> None:
        form = form_of(read_setting(DEFAULT)) | preset.form
        self._forget_guess()
        self._before = self._before or self.session.spec
        self._undo.set_visibility(True)
        self.session.replace(setting_of(form))
        self._guess = Guess(preset, number, self.session.spec)
        self._answers[preset.id].set_content("Training …")
        self._mark(preset.id, number)
        self.show_form()
        await self.update()

    async def _try_pool(self, number: int) -> None:
        self._mark(POOL.id, number)
        pools = await self._pooling.compute("The pools could not be computed")
        if pools is not None:
            self._answers[POOL.id].set_content(glossed(POOL.judge(number, pool_answer(pools))))
            self._pool.show(pool_data(pools))

    async def _go_back(self) -> None:
        spec, self._before = self._before, None
        self._undo.set_visibility(False)
        if spec is not None:
            await self.replace(spec)

    def _show_answer(self) -> None:
        """Say whether the guess was right, once everything that the answer needs is there."""
        guess, wanted = self._guess, ("facts", "flow", "behaviour", "identification")
        if guess is None or any(self.session.current(name) is None for name in wanted):
            return
        told = guess.preset.judge(guess.number, guess.preset.answer(self.session.results))
        self._answers[guess.preset.id].set_content(glossed(told))
        self._guess = None


def _button(text: str, act: Callable[[], Any]) -> ui.button:
    """A button that does not shout."""
    return ui.button(text, on_click=act).props("flat dense no-caps").classes("px-2")


def _text(source: str) -> ui.html:
    """A text of a step."""
    return _glossed(source).classes("story-text")


def _glossed(source: str) -> ui.html:
    """A sentence with symbols of the glossary."""
    return ui.html(glossed(source), sanitize=False)  # `glossed` escapes everything else
