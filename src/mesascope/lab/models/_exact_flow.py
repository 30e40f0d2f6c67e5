"""A fold-out of the page of models: where training with infinitely many samples and infinitely small steps goes."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from mesascope.lab._plateaus_view import PlateausView
from mesascope.lab._session import Session
from mesascope.lab._widgets import sentence
from mesascope.studies import DataSpec, ModelFlowSpec, TrainSpec

_EXACT = (
    "Gradient flow of the expected loss: no samples, no optimizer. The start is drawn as that of the training, in double "
    "precision: other numbers of the same law. The loss is known exactly for one layer of linear attention, for steps of "
    "gradient descent as layers on regression prompts, and for any model on few short sequences of symbols."
)


class ExactFlow:
    """The exact flow of the training that the page shows, with its plateaus.

    Args:
        session: of the window.
        spec: returns the training.
    """

    def __init__(self, session: Session, spec: Callable[[], TrainSpec]) -> None:
        with (
            ui.expansion("Without sampling: the exact gradient flow and its plateaus")
            .classes("w-full lab-fold")
            .props("data-act=exact-flow")
        ):
            sentence(_EXACT)
            view = PlateausView(session, lambda: flow_of(spec()))
        self.clear, self.draw = view.clear, view.draw


def flow_of(spec: TrainSpec) -> ModelFlowSpec:
    """The gradient flow of the data, the task and the start of a training."""
    data = {name: getattr(spec, name) for name in DataSpec.model_fields}
    return ModelFlowSpec.model_validate(data | {"model": spec.model, "seed": (spec.seeds or (spec.seed,))[0]})
