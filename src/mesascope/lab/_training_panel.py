"""Where training goes: the exact flow, sampled training beside it, and the weights over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from nicegui import ui

from mesascope.studies import SpecError

from ._figures import loss_figure, phase_figure, phase_reach, product_figure, weight_figure
from ._jobs import JobFailedError
from ._session import Session
from ._sizes import FRAMES
from ._widgets import NO_FLOW, Plot, Slider, Work, sentence
from ._words import typeset

# Pointer and arrow keys on the picture of the (a, b) plane, in the units of its axes. They listen to the whole document, for
# the picture comes and goes with its panel. Keys go on from where the last one led, as long as the picture keeps the focus:
# the server's answers to those before may be under way.
_DRAW = """
(() => {
  let plot = null, last = 0;
  const send = (event) => {
    const { xaxis, yaxis } = plot._fullLayout || {};
    if (!xaxis) return false;
    const box = plot.getBoundingClientRect();
    const a = xaxis.p2d(event.clientX - box.left - xaxis._offset);
    const b = yaxis.p2d(event.clientY - box.top - yaxis._offset);
    const within = (x, [low, high]) => x >= low && x <= high;
    const inside = within(a, xaxis.range) && within(b, yaxis.range);
    if (inside) emitEvent("lab_start", { a, b });
    return inside;
  };
  document.addEventListener("pointerdown", (event) => {
    plot = event.button === 0 ? event.target.closest('[data-figure="phase"]') : null;
    if (plot && !send(event)) plot = null;
    if (plot) event.preventDefault();
    if (plot) led = null;
  }, true);
  document.addEventListener("pointermove", (event) => {
    if (!plot || event.timeStamp - last < 60) return;
    last = event.timeStamp;
    send(event);
  }, true);
  document.addEventListener("pointerup", (event) => { if (plot) send(event); plot = null; }, true);

  const keys = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  let led = null, wanted = null, telling = 0;
  document.addEventListener("focusout", () => { led = null; }, true);
  document.addEventListener("keydown", (event) => {
    const picture = event.target.closest?.('[data-figure="phase"]'), along = keys[event.key];
    if (!along || !picture?._fullLayout) return;
    event.preventDefault();
    const [low, high] = picture._fullLayout.xaxis.range, step = (high - low) * (event.shiftKey ? 0.1 : 0.01);
    const start = picture.data.find((trace) => trace.name === "start");
    const from = led || { a: start.x[0], b: start.y[0] };
    led = wanted = { a: from.a + step * along[0], b: from.b + step * along[1] };
    telling ||= setTimeout(() => { telling = 0; emitEvent("lab_start", wanted); }, 50);
  }, true);
})()
"""


class TrainingPanel:
    """Figures of the flow, with a slider through its weights."""

    def __init__(self, session: Session) -> None:
        self._session = session
        with ui.row().classes("items-center gap-3 w-full"):
            self._end = sentence("").classes("text-body2").props('data-fact="end"')
        with ui.element("div").classes("lab-grid"):
            self._product, self._loss = Plot("product"), Plot("loss")
            self._phase = Plot("phase")
            self._phase.plot.props("tabindex=0 aria-keyshortcuts='ArrowLeft ArrowRight ArrowUp ArrowDown'")
            with ui.column().classes("gap-1"):
                with ui.card().classes("lab-card"):
                    self._time = ui.label("Weights").classes("text-subtitle2")
                    self._slider = Slider(min=0, max=FRAMES - 1, value=FRAMES - 1, on_change=self._at)
                    self._slider.props('aria-label="time of the weights" data-slider="time"').classes("px-2")
                self._w_kq, self._w_pv = Plot("w_kq"), Plot("w_pv")
        self._sampling()

    def _sampling(self) -> None:
        with ui.card().classes("lab-card"):
            title = ui.label("Sampled training beside it").classes("text-subtitle2")
            title.props("role=heading aria-level=2")
            ui.label(
                "Gradient descent on one batch of sampled sequences, as in the paper's experiments. Time is steps × rate."
            ).classes("text-caption lab-caption")
            with ui.row().classes("items-start gap-2"):
                self._samples = ui.input("sequences", value="256").props("dense outlined data-field=samples")
                self._steps = ui.input("steps", value="200").props("dense outlined data-field=steps")
                self._rate = ui.input("learning rate", placeholder="as far as the picture").props(
                    "dense outlined data-field=rate stack-label"
                )
                self._seed = ui.input("seed", value="0").props("dense outlined data-field=seed")
                ui.button("Train on samples", on_click=self._train).props("no-caps unelevated data-act=train")
            self.work = Work(lambda: self._session.busy.get("train"), lambda: self._session.cancel("train"))

    def prepare(self) -> None:
        """Let pointer and keys draw starts on the picture of the plane."""
        ui.run_javascript(_DRAW)

    def draw(self) -> None:
        """Show the flow that was computed."""
        flow = self._session.results.get("flow")
        if flow is None:
            return
        end, theme, sampled = flow["end"], self._session.theme, self._session.results.get("train")
        products = np.asarray(end["product"])
        told = (
            f"{products[0]:.6g}"
            if np.ptp(products) < 1e-6
            else f"{products.min():.4g} … {products.max():.4g}"
        )
        reason = end["limit_reason"]
        limit = (
            f"{end['limit_product']:.6g}, {reason}" if end["limit_product"] is not None else f"none: {reason}"
        )
        self._end.set_content(
            typeset(
                f"{end['result']}: {end['message']}. ab = {told}; limit by theory {limit}. Loss {end['loss']:.6g}, "
                f"{end['steps']} steps."
            )
        )
        self._product.show(product_figure(flow, sampled), theme)
        self._loss.show(loss_figure(flow, sampled), theme)
        reach = phase_reach(flow)
        square = {
            "range": [-reach, reach],
            "zeroline": True,
            "zerolinecolor": theme.grid,
            "fixedrange": True,
            "constrain": "domain",
        }
        self._phase.show(
            phase_figure(flow),
            theme,
            xaxis=square,
            yaxis=square | {"scaleanchor": "x"},
            height=420,
            dragmode=False,
        )
        self.draw_weights()

    def _at(self) -> None:
        self.draw_weights()

    def draw_weights(self) -> None:
        """Show the weights at the time that the slider stands at."""
        flow = self._session.results.get("flow")
        if flow is None:
            return
        frame = int(self._slider.value or 0)
        times = flow["frame_times"]
        self._time.set_text(f"Weights at flow time {times[frame]:.4g} of {times[-1]:.4g}")
        self._w_kq.show(weight_figure(flow, "w_kq", frame), self._session.theme)
        self._w_pv.show(weight_figure(flow, "w_pv", frame), self._session.theme)

    async def _train(self) -> None:
        flow = self._session.current("flow")
        self.work.complain(None if flow else NO_FLOW)
        if flow is None:
            return
        arguments = self._arguments(flow)
        if arguments is None:
            return
        try:
            done = await self._session.compute("train", "slow", setting=self._session.setting, **arguments)
        except (SpecError, JobFailedError) as error:
            self.work.complain(f"Training failed: {error}")
            return
        if done is not None:
            self.draw()

    def _arguments(self, flow: dict[str, Any]) -> dict[str, Any] | None:
        """What the fields say; None where one is wrong, with the message at it."""
        found = {
            "samples": _whole(self._samples, 2, 20_000),
            "steps": _whole(self._steps, 1, 100_000),
            "seed": _whole(self._seed, 0, 2**32 - 1),
            "rate": _rate(self._rate, flow, _whole(self._steps, 1, 100_000)),
        }
        return None if None in found.values() else found


def _whole(field: Any, least: int, most: int) -> int | None:
    text = (field.value or "").strip()
    good = text.isdecimal() and len(text) < 12 and least <= int(text) <= most
    field.error = None if good else f"an integer from {least} to {most}"
    return int(text) if good else None


def _rate(field: Any, flow: dict[str, Any], steps: int | None) -> float | None:
    """The learning rate; when left out, the one whose steps reach as far as the picture of the flow."""
    text = (field.value or "").strip()
    if not text:
        figure = product_figure(flow)
        (first, *_) = figure.panels[0].traces
        reach = float(first.x[-1])  # type: ignore[union-attr]
        field.error = None if reach > 0 else "the flow rests at its start; give a number such as 1e-4"
        return reach / steps if steps and reach > 0 else None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    good = 0 < rate < 1e9
    field.error = None if good else "a number greater than 0, such as 1e-4"
    return rate if good else None
