"""What the trained layer does in context."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from mesascope.studies import SpecError

from ._figures import error_figure, ratio_figure, scatter_figure, sensitivity_figure
from ._jobs import JobFailedError
from ._session import Session
from ._sizes import ASKED_TASKS
from ._widgets import NO_FLOW, Plot, Work, sentence
from ._words import told

_FEW = ["zero", "last-token", "gradient-descent", "preconditioned-gradient-descent", "least-squares", "ridge"]


class MindPanel:
    """Predictions and truth, what they depend on, and the algorithm by its name."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._words = ui.column().classes("gap-1")
        self.measuring = Work(lambda: session.busy.get("mind"), lambda: session.cancel("mind"))
        with ui.element("div").classes("lab-grid"):
            self._error, self._scatter = Plot("error"), Plot("predictions")
            self._ratio, self._sensitivity = Plot("ratio"), Plot("sensitivity")
        with ui.card().classes("lab-card"):
            title = ui.label("Which algorithm does it run?").classes("text-subtitle2")
            title.props("role=heading aria-level=2")
            with ui.row().classes("items-center gap-3"):
                self._which = ui.radio(
                    {"few": "six learners that compete here", "all": "all learners, a minute or more"},
                    value="few",
                ).props("inline dense")
                ui.button("Identify", on_click=self._identify).props("no-caps unelevated data-act=identify")
            self.work = Work(lambda: session.busy.get("ask"), lambda: session.cancel("ask"))
            self._answer = ui.column().classes("w-full gap-1").props('data-fact="identification"')

    def forget(self) -> None:
        """What was said is about other weights."""
        self._session.drop("mind", "ask")
        self._session.results.pop("mind", None)
        self._session.results.pop("ask", None)
        self._answer.clear()

    async def measure(self) -> None:
        """Measure the layer that the flow ended with, unless that is done."""
        flow = self._session.current("flow")
        if flow is None or "mind" in self._session.results:
            return
        self.measuring.complain(None)
        try:
            mind = await self._session.compute("mind", setting=self._session.setting, **_weights(flow))
        except (SpecError, JobFailedError) as error:
            self.measuring.complain(f"It could not be measured: {error}")
            return
        if mind is not None:
            self.draw()

    def draw(self) -> None:
        """Show what was measured."""
        mind, theme = self._session.results.get("mind"), self._session.theme
        if mind is None:
            return
        self._words.clear()
        with self._words:
            for line in told(mind):
                sentence(line)
        self._error.show(error_figure(mind), theme)
        self._scatter.show(scatter_figure(mind), theme)
        self._ratio.show(ratio_figure(mind), theme)
        self._sensitivity.show(sensitivity_figure(mind), theme)

    async def _identify(self) -> None:
        flow = self._session.current("flow")
        self.work.complain(None if flow else NO_FLOW)
        if flow is None:
            return
        learners = _FEW if self._which.value == "few" else None
        arguments = {
            "setting": self._session.setting,
            "learners": learners,
            "tasks": ASKED_TASKS,
            **_weights(flow),
        }
        try:
            answer = await self._session.compute("ask", "slow", **arguments)
        except (SpecError, JobFailedError) as error:
            self.work.complain(f"It cannot be identified: {error}")
            return
        if answer is not None:
            self._answer.clear()
            with self._answer:
                _show(answer)


def _weights(flow: dict[str, Any]) -> dict[str, Any]:
    return {"w_kq": flow["w_kq"][-1], "w_pv": flow["w_pv"][-1]}


def _show(answer: dict[str, Any]) -> None:
    verdict = answer["verdict"] + (f": {', '.join(answer['candidates'])}" if answer["candidates"] else "")
    ui.label(verdict).classes("text-weight-bold").props('data-fact="verdict"')
    for reason in answer["reasons"]:
        ui.label(reason)
    if answer["reading"]:
        ui.label(f"The weights themselves say: {answer['reading']}")
    columns = [
        {"name": name, "label": label, "field": name, "align": "left"}
        for name, label in (
            ("learner", "learner"),
            ("distance", "distance"),
            ("interval", "95 % interval"),
            ("hyperparameters", "hyperparameters"),
        )
    ]
    rows = [
        {
            "learner": entry["learner"],
            "distance": f"{entry['distance']:.3e}",
            "interval": f"[{entry['interval'][0]:.2e}, {entry['interval'][1]:.2e}]",
            "hyperparameters": ", ".join(f"{k} = {_short(v)}" for k, v in entry["hyperparameters"].items()),
        }
        for entry in answer["ranking"]
    ]
    ui.table(columns=columns, rows=rows, row_key="learner").classes("w-full").props("dense flat wrap-cells")


def _short(value: Any) -> str:
    match value:
        case [[*_], *_]:
            return f"{len(value)} × {len(value[0])} matrix"
        case list():
            return f"[{', '.join(map(_short, value))}]"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
