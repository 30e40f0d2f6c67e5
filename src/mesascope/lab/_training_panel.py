"""Where training goes: the exact flow, sampled training beside it, and the weights over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from nicegui import ui

from mesascope.specs import SpecError, positive

from ._editors import read_number
from ._figures import loss_figure, phase_figure, phase_reach, product_figure, weight_figure
from ._session import Session
from ._sizes import FRAMES
from ._widgets import NO_FLOW, Plot, Slider, Work, heading, sentence
from ._words import typeset

# Pointer and arrow keys on the figure of the (a, b) plane, in the units of its axes. The listeners belong to the document,
# since the figure exists only while its panel is open. A drag reads points on the axes as they stood when it began: the figure
# is drawn anew under it, to another scale. Each key moves from the point of the last one while the figure has the focus: the
# server may not have answered yet.
_DRAW = """
(() => {
  let axes = null, last = 0;
  const axesOf = (plot) => {
    const { xaxis, yaxis } = plot?._fullLayout || {};
    if (!xaxis) return null;
    const { left, top } = plot.getBoundingClientRect();
    const [west, east] = xaxis.range, [south, north] = yaxis.range;
    const x = left + xaxis._offset, y = top + yaxis._offset, { _length: width } = xaxis, { _length: height } = yaxis;
    return {
      a: (event) => west + ((event.clientX - x) / width) * (east - west),
      b: (event) => north - ((event.clientY - y) / height) * (north - south),
      within: (a, b) => a >= west && a <= east && b >= south && b <= north,
    };
  };
  const send = (event) => {
    const a = axes.a(event), b = axes.b(event), inside = axes.within(a, b);
    if (inside) emitEvent("lab_start", { a, b });
    return inside;
  };
  document.addEventListener("pointerdown", (event) => {
    axes = event.button === 0 ? axesOf(event.target.closest('[data-figure="phase"]')) : null;
    if (axes && !send(event)) axes = null;
    if (!axes) return;
    event.preventDefault();
    reached = null;
  }, true);
  document.addEventListener("pointermove", (event) => {
    if (!axes || event.timeStamp - last < 60) return;
    last = event.timeStamp;
    send(event);
  }, true);
  document.addEventListener("pointerup", (event) => { if (axes) send(event); axes = null; }, true);

  const keys = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  let reached = null, wanted = null, timer = 0;
  document.addEventListener("focusout", () => { reached = null; }, true);
  document.addEventListener("keydown", (event) => {
    const picture = event.target.closest?.('[data-figure="phase"]'), along = keys[event.key];
    if (!along || !picture?._fullLayout) return;
    event.preventDefault();
    const [low, high] = picture._fullLayout.xaxis.range, step = (high - low) * (event.shiftKey ? 0.1 : 0.01);
    const start = picture.data.find((trace) => trace.name === "start");
    const from = reached || { a: start.x[0], b: start.y[0] };
    reached = wanted = { a: from.a + step * along[0], b: from.b + step * along[1] };
    timer ||= setTimeout(() => { timer = 0; emitEvent("lab_start", wanted); }, 50);
  }, true);
})()
"""


_INPUTS = (
    ("samples", "sequences", "256"),
    ("steps", "steps", "200"),
    ("rate", "learning rate", ""),
    ("seed", "seed", "0"),
)
_RANGES = {"samples": (2, 20_000), "steps": (1, 100_000), "seed": (0, 2**32 - 1)}


class TrainingPanel:
    """Figures of the flow, with a slider through its weights."""

    def __init__(self, session: Session) -> None:
        self._session = session
        with ui.row().classes("items-center gap-3 w-full"):
            self._end = sentence("").classes("text-body2 lab-end").props('data-fact="end"')
        with ui.element("div").classes("lab-grid"):
            self._product, self._loss = Plot("product"), Plot("loss")
            self._phase = Plot("phase")
            self._phase.plot.props("tabindex=0 aria-keyshortcuts='ArrowLeft ArrowRight ArrowUp ArrowDown'")
            with ui.column().classes("gap-1"):
                with ui.card().classes("lab-card"):
                    self._time = ui.label("Weights").classes("text-subtitle2")
                    self._slider = Slider(
                        min=0, max=FRAMES - 1, value=FRAMES - 1, on_change=self.draw_weights
                    )
                    self._slider.props('aria-label="time of the weights" data-slider="time"').classes("px-2")
                self._weights = {name: Plot(name) for name in ("w_kq", "w_pv")}
        self._sampling()

    def _sampling(self) -> None:
        with ui.card().classes("lab-card"):
            heading("Sampled training beside it")
            ui.label(
                "Gradient descent on one batch of sampled sequences, as in the paper's experiments. Time is steps × rate."
            ).classes("text-caption lab-caption")
            with ui.row().classes("items-start gap-2"):
                self._inputs = {
                    name: ui.input(label, value=value).props(
                        'dense outlined stack-label placeholder="as far as the figure"'
                    )
                    for name, label, value in _INPUTS
                }
                for name, one in self._inputs.items():
                    one.props["data-field"] = name
                ui.button("Train on samples", on_click=self._train).props("no-caps unelevated data-act=train")
            self.work = Work(self._session, "descent")

    def prepare(self) -> None:
        """Let pointer and keys choose starts on the (a, b) plane."""
        ui.run_javascript(_DRAW)

    def draw(self) -> None:
        """Show the flow that was computed."""
        self.draw_products()
        self.draw_others()

    def draw_products(self) -> None:
        """Show how the flow ended, and the figure that is looked at first."""
        flow = self._session.results.get("flow")
        if flow is None:
            return
        end = flow["end"]
        products = np.asarray(end["product"])
        product = (
            f"{products[0]:.6g}"
            if np.ptp(products) < 1e-6
            else f"{products.min():.4g} … {products.max():.4g}"
        )
        reason = end["limit_reason"]
        limit = (
            f"{end['limit_product']:.6g}, {reason}" if end["limit_product"] is not None else f"none: {reason}"
        )
        loss = self._session.spec.data()[1].loss_text(f"{end['loss']:.6g}")
        self._end.set_content(
            typeset(
                f"{end['result']}: {end['message']}. ab = {product}; limit by theory {limit}. Loss {loss}, "
                f"{end['steps']} steps."
            )
        )
        self._product.show(product_figure(flow, self._session.results.get("descent")), self._session.theme)

    def draw_others(self) -> None:
        """Show the other figures."""
        flow, theme = self._session.results.get("flow"), self._session.theme
        if flow is None:
            return
        self._loss.show(loss_figure(flow, self._session.results.get("descent")), theme)
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

    def draw_weights(self) -> None:
        """Show the weights at the time of the slider."""
        flow = self._session.results.get("flow")
        if flow is None:
            return
        frame = int(self._slider.value or 0)
        times = flow["frame_times"]
        self._time.set_text(f"Weights at flow time {times[frame]:.4g} of {times[-1]:.4g}")
        for name, plot in self._weights.items():
            plot.show(weight_figure(flow, name, frame), self._session.theme)

    async def _train(self) -> None:
        flow = self._session.current("flow")
        if flow is None:
            self.work.show_error(NO_FLOW)
            return
        arguments = self._arguments(flow)
        if None not in arguments.values():
            arguments["spec"] = self._session.spec
            if await self.work.compute("Training failed", "slow", **arguments) is not None:
                self.draw()

    def _arguments(self, flow: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the fields; None for one that is wrong, with an error at it."""
        whole: dict[str, Any] = {name: _whole(self._inputs[name], *ends) for name, ends in _RANGES.items()}
        return {**whole, "rate": _rate(self._inputs["rate"], flow, whole["steps"])}


def _whole(field: Any, low: int, high: int) -> int | None:
    number = read_number(field.value or "")
    good = type(number) is int and low <= number <= high
    field.error = None if good else f"an integer from {low} to {high}"
    return number if good else None


def _rate(field: Any, flow: dict[str, Any], steps: int | None) -> float | None:
    """The learning rate; when left out, the one whose steps reach the end of the figure of the flow."""
    text = (field.value or "").strip()
    if not text:
        figure = product_figure(flow)
        (first, *_) = figure.panels[0].traces
        end = float(first.x[-1])  # type: ignore[union-attr]
        field.error = None if end > 0 else "the flow does not move; give a number such as 1e-4"
        return end / steps if steps and end > 0 else None
    try:
        rate = float(positive(read_number(text)))
    except SpecError:
        rate = 0.0
    good = 0 < rate < 1e9
    field.error = None if good else "a number greater than 0, such as 1e-4"
    return rate if good else None
