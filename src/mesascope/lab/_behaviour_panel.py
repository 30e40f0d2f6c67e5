"""What the trained layer does in context."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from nicegui import ui

from ._figures import OF_BEHAVIOUR
from ._session import Session
from ._sizes import FRAMES, IDENTIFY_TASKS
from ._widgets import NO_FLOW, Plot, Slider, Work, heading, sentence
from ._words import measurements

SIX_LEARNERS = [
    "zero",
    "last-token",
    "gradient-descent",
    "preconditioned-gradient-descent",
    "least-squares",
    "ridge",
]


class BehaviourPanel:
    """Predictions and truth, what predictions depend on, and the name of the algorithm.

    Args:
        session: of the window.
        status: the place over the page where the progress of the measurement is shown.
    """

    def __init__(self, session: Session, status: ui.element) -> None:
        self._session = session
        with ui.card().classes("lab-card"):
            self._time = ui.label("The layer at the end of the flow").classes("text-subtitle2")
            self._slider = Slider(min=0, max=FRAMES - 1, value=FRAMES - 1, on_change=self._moved)
            self._slider.props('aria-label="time of the layer" data-slider="behaviour"').classes("px-2")
        self._words = ui.column().classes("gap-1 lab-words")
        with status:
            self.measuring = Work(session, "behaviour")
        with ui.element("div").classes("lab-grid"):
            self._plots = [Plot(name) for name in OF_BEHAVIOUR]
        with ui.card().classes("lab-card"):
            heading("Which algorithm does it run?")
            with ui.row().classes("items-center gap-3"):
                self._which = ui.radio(
                    {"few": "six learners that compete here", "all": "all learners, a minute or more"},
                    value="few",
                ).props("inline dense")
                ui.button("Identify", on_click=self._identify).props("no-caps unelevated data-act=identify")
            self.work = Work(session, "identification")
            self._answer = ui.column().classes("w-full gap-1").props('data-fact="identification"')

    def clear(self) -> None:
        """Remove the results for other weights."""
        for name in ("behaviour", "identification"):
            self._session.drop(name)
            self._session.results.pop(name, None)
        self._answer.clear()

    def _moved(self) -> Awaitable[None]:
        self.clear()
        return self.measure()

    @property
    def _frame(self) -> int:
        """Which of the frames of the flow is shown."""
        return int(self._slider.value or 0)

    async def measure(self) -> None:
        """Measure the layer at the time of the slider, unless that is done."""
        flow = self._session.current("flow")
        if flow is None or "behaviour" in self._session.results:
            return
        times, frame = flow["frame_times"], self._frame
        self._time.set_text(f"The layer at flow time {times[frame]:.4g} of {times[-1]:.4g}")
        self._session.results["frame"] = frame
        arguments = {"spec": self._session.spec, **weights_at(flow, frame)}
        if await self.measuring.compute("It could not be measured", **arguments) is not None:
            self.draw()

    def draw(self) -> None:
        """Show what was measured."""
        behaviour, theme = self._session.results.get("behaviour"), self._session.theme
        if behaviour is None:
            return
        self._words.clear()
        with self._words:
            for line in measurements(behaviour):
                sentence(line)
        for plot in self._plots:
            plot.show(OF_BEHAVIOUR[plot.name](behaviour), theme)

    async def _identify(self) -> None:
        flow = self._session.current("flow")
        if flow is None:
            self.work.show_error(NO_FLOW)
            return
        learners = SIX_LEARNERS if self._which.value == "few" else None
        arguments = {
            "spec": self._session.spec,
            "learners": learners,
            "tasks": IDENTIFY_TASKS,
            **weights_at(flow, self._frame),
        }
        answer = await self.work.compute("It cannot be identified", "slow", **arguments)
        if answer is not None:
            self._answer.clear()
            with self._answer:
                show_identification(answer)


def weights_at(flow: dict[str, Any], frame: int = -1) -> dict[str, Any]:
    """Return the weights at one of the frames of a flow, by default its end, as arguments of a job."""
    return {"w_kq": flow["w_kq"][frame], "w_pv": flow["w_pv"][frame]}


def show_identification(answer: dict[str, Any]) -> None:
    """Show verdict and headline, reasons, and the table of candidates."""
    ui.label(f"{answer['verdict']}: {answer['headline']}").classes("text-weight-bold").props(
        'data-fact="verdict"'
    )
    for reason in answer["reasons"]:
        ui.label(reason)
    if answer["reading"]:
        ui.label(f"The weights themselves say: {answer['reading']}")
    rows = [
        (
            entry["learner"],
            f"{entry['distance']:.3e}",
            f"[{entry['interval'][0]:.2e}, {entry['interval'][1]:.2e}]",
            ", ".join(f"{k} = {_short(v)}" for k, v in entry["hyperparameters"].items()),
        )
        for entry in answer["ranking"]
    ]
    show_table(("learner", "distance", "95 % interval", "hyperparameters"), rows)


def show_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Show a table of texts, whose first column has no text twice."""
    each = {"align": "left", "classes": "lab-entry"}
    columns = [{"name": name, "label": name, "field": name, **each} for name in names]
    shown = [dict(zip(names, row, strict=True)) for row in rows]
    ui.table(columns=columns, rows=shown, row_key=names[0]).classes("w-full").props("dense flat wrap-cells")


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
