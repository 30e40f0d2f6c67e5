"""The page of models: train one, or take one's own, and see which algorithm it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

from nicegui import ui

from mesascope.lab._behaviour_panel import show_identification
from mesascope.lab._compare_page import compare_address
from mesascope.lab._form import Form
from mesascope.lab._form_panel import FormPanel
from mesascope.lab._frame import Frame
from mesascope.lab._session import Lab
from mesascope.lab._setting import table_of_query, to_query, to_toml
from mesascope.lab._sizes import IDENTIFY_TASKS
from mesascope.lab._widgets import Plot, Work, draw_figures, heading
from mesascope.processes import Task
from mesascope.studies import SpecError, TrainSpec

from ._exact_flow import ExactFlow
from ._losses import CAPTION, TITLE, losses_figure
from ._presets import PRESETS
from ._training_form import (
    read_training,
    training_form,
    training_layout,
    training_of,
    training_place,
    with_kind,
)

_STEPS = (
    "Choose data, model and training in the form, or begin with an example.",
    "Train: samples are drawn afresh for every step, as mesascope train does, and the loss is drawn while it falls.",
    "Identify: the trained model is compared with every learner that fits the data, which takes a minute or more. You "
    "read which algorithm it runs, and how far every other one is.",
)
_UNTRAINED = "There is no trained model yet: train one first."


class ModelsPage(Frame):
    """One window in which models of the registry are trained, and models of the user are identified."""

    path = "/models"

    def __init__(self, lab: Lab, query: str) -> None:
        super().__init__(lab)
        notice = self._take(query)
        self._form: Form = training_form(self._spec)
        self._asked = self._drawn = 0
        with ui.element("div").classes("lab-page"):
            with ui.element("section").classes("lab-side").props('aria-label="training"'):
                self._preset = ui.select(
                    list(PRESETS),
                    label="begin with",
                    value=_preset_of(self._spec),
                    on_change=lambda event: self._begin(event.value),
                )
                self._preset.classes("w-full lab-preset").props(
                    "dense outlined options-dense data-field=preset"
                )
                self._panel = FormPanel(training_layout(), self._form, self._changed)
            with ui.element("div").classes("lab-main lab-models"):
                self._notice = ui.label(notice).classes("lab-error").props("role=alert")
                self._notice.set_visibility(bool(notice))
                with ui.card().classes("lab-card"):
                    heading("Train a small transformer, and ask which algorithm it has learned")
                    for number, step in enumerate(_STEPS, 1):
                        ui.label(f"{number}. {step}")
                self._add_training()
                self._add_own()
                self._add_answer()
        self.session.watchers.append(self._draw_live)
        self._lead_to_comparison()

    def _take(self, query: str) -> str:
        """Take the training of the address; return what is wrong with it."""
        first = read_training(next(iter(PRESETS.values())))
        try:
            table = table_of_query(query)
            self._spec: TrainSpec = read_training(table) if table else first
        except SpecError as error:
            self._spec = first
            return f"The address could not be read ({error}); this is the default."
        return ""

    def add_actions(self) -> None:
        """Add what is done with a training: share it, keep it."""
        with ui.button("Share", icon="share").props("flat no-caps color=white"), ui.menu():
            ui.menu_item("Copy the address", self._copy_address)
            ui.menu_item("Download the specification", self._download)
            ui.menu_item("Compare with another training", self._compare)

    def _copy_address(self) -> None:
        ui.run_javascript("navigator.clipboard.writeText(location.href)")
        ui.notify("The address of this training was copied.")

    def _compare(self) -> None:
        ui.navigate.to(self._comparison(), new_tab=True)

    def _comparison(self) -> str:
        return compare_address(f"{self.path}?{to_query(self._spec)}")

    def _lead_to_comparison(self) -> None:
        self.links["/compare"].props["href"] = self._comparison()

    def _download(self) -> None:
        ui.download.content(to_toml(self._spec, "train"), "training.toml")

    async def begin(self, narrow: bool) -> None:
        """Fold the form on a phone."""
        self._panel.begin(narrow)

    # The parts of the page

    def _add_training(self) -> None:
        with ui.card().classes("lab-card"):
            heading("Train it")
            with ui.row().classes("items-center gap-3"):
                ui.button("Train", icon="play_arrow", on_click=self._train).props(
                    "no-caps unelevated data-act=train"
                )
            with ui.element("div").classes("w-full lab-outcome"):
                self._training = Work(self.session, "training")
                self._end = ui.label("").props('data-fact="training"')
        self._plot = Plot("losses")
        self._flow = ExactFlow(self.session, lambda: self._spec)

    def _add_own(self) -> None:
        if not self.session.lab.models:
            return
        with ui.card().classes("lab-card"):
            heading("Or take your own model")
            for name, spec in self.session.lab.models.items():
                with ui.row().classes("items-center gap-3"):
                    button = ui.button("Identify", on_click=partial(self._identify_own, name))
                    button.props("no-caps unelevated")
                    button.props.update({"aria-label": f"identify {name}", "data-own": name})
                    ui.label(f"{name}: {spec.model.kind} on {spec.source.kind}")
            with ui.element("div").classes("w-full lab-outcome"):
                self._own = Work(self.session, "given")

    def _add_answer(self) -> None:
        with ui.card().classes("lab-card"):
            heading("Which algorithm has it learned?")
            with ui.row().classes("items-center gap-3"):
                ui.button("Identify the trained model", on_click=self._identify).props(
                    "no-caps unelevated data-act=identify"
                )
            self._identifying = Work(self.session, "learned")
            self._answer = ui.column().classes("w-full gap-1").props('data-fact="identification"')
        self._figures = ui.element("div").classes("lab-grid")

    # The form

    def _begin(self, preset: str | None) -> None:
        if preset is None or preset == _preset_of(self._spec):  # what the page itself has shown
            return
        spec = read_training(PRESETS[preset])
        self._form = training_form(spec)
        self._panel.show(self._form, {})
        self._set(spec)

    def _changed(self, name: str, text: str) -> Awaitable[None]:
        """Take a text at once; it is read once all changes of this moment are there."""
        family, _, field = name.rpartition(".")
        self._form = with_kind(self._form, family, text) if field == "kind" else self._form | {name: text}
        self._asked += 1
        return self._read(self._asked)

    async def _read(self, asked: int) -> None:
        await asyncio.sleep(0)
        if asked != self._asked:
            return
        try:
            spec = training_of(self._form)
        except SpecError as error:
            self._panel.show(self._form, {training_place(error, self._form): error.what})
            return
        self._panel.show(self._form, {})
        if spec != self._spec:
            self._set(spec)

    def _set(self, spec: TrainSpec) -> None:
        """Take another training; what belongs to the one before is stopped and removed."""
        self._spec = spec
        self._preset.set_value(_preset_of(spec))
        for name in ("training", "learned"):
            self.session.cancel(name)
            self.session.results.pop(name, None)
        self.session.points.pop("training", None)
        self._training.show_error(None)
        self._end.set_text("")
        self._plot.card.set_visibility(False)
        self._flow.clear()
        self._clear_answer()
        ui.run_javascript(f"history.replaceState(null, '', {'?' + to_query(spec)!r})")
        self._lead_to_comparison()

    def _clear_answer(self) -> None:
        self._shown = None
        self._answer.clear()
        self._figures.clear()

    # Training

    async def _train(self) -> None:
        spec = self._spec
        self.session.results.pop("training", None)
        self._end.set_text("")
        self._clear_answer()
        self._plot.reserve(TITLE, CAPTION)
        result = await self._training.compute("Training failed", "slow", spec=spec)
        if result is None or spec is not self._spec:
            return
        self._draw()
        loss = self._task.loss_text(f"{result['loss']:.4g} ± {1.96 * result['loss_se']:.2g}")
        exact = result["exact_loss"]
        self._end.set_text(
            f"Loss on fresh samples {loss}, 95 % interval"
            + ("" if exact is None else f"; in expectation {exact:.6g}, computed exactly")
            + ("." if result["succeeded"] else f": {result['message']}.")
        )

    @property
    def _task(self) -> Task:
        return self._spec.build_data()[1]

    def _draw_live(self) -> None:
        """Draw the losses that have come since."""
        points = self.session.points.get("training", ())
        if len(points) > self._drawn and "training" not in self.session.results:
            self._plot.show(losses_figure(self._task, *zip(*points, strict=True)), self.session.theme)
        self._drawn = len(points)

    def _draw(self) -> None:
        result = self.session.results.get("training")
        if result is not None:
            self._plot.show(losses_figure(self._task, result["steps"], result["losses"]), self.session.theme)

    def redraw(self) -> None:
        """Draw the figures again in the colours of the theme."""
        self._draw()
        self._flow.draw()
        if self._shown:
            self._show(*self._shown)

    # Identification

    _shown: tuple[str, str] | None = None  # the answer that is on the page, and whose it is

    async def _identify(self) -> None:
        trained = self.session.results.get("training")
        if trained is None:
            self._identifying.show_error(_UNTRAINED)
            return
        found = await self._identifying.compute(
            "It cannot be identified",
            "slow",
            spec=self._spec,
            leaves=trained["leaves"],
            tasks=IDENTIFY_TASKS,
        )
        if found is not None and self.session.results.get("training") is trained:
            self._show("learned", "The model trained above:")

    async def _identify_own(self, name: str) -> None:
        found = await self._own.compute(
            f"{name} cannot be identified", "slow", spec=self.session.lab.models[name]
        )
        if found is not None:
            self._show("given", f"The model of {name}:")

    def _show(self, name: str, whose: str) -> None:
        found: dict[str, Any] = self.session.results[name]
        self._clear_answer()
        self._shown = name, whose
        with self._answer:
            ui.label(whose).classes("lab-caption")
            show_identification(found)
        with self._figures:
            draw_figures(found["figures"].items(), self.session.theme)


def _preset_of(spec: TrainSpec) -> str | None:
    """The name of the preset that a training is."""
    return next((name for name, table in PRESETS.items() if read_training(table) == spec), None)
