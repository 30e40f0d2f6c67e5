"""What a training run leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import equinox as eqx
import numpy as np

from mesascope.core import Estimate
from mesascope.processes import Task
from mesascope.records import Figure, Printed, training_figure

from ._outcome import Outcome

Model = TypeVar("Model", bound=eqx.Module)


class Training(Printed, eqx.Module, Generic[Model]):
    """A finished training run; `ms.plot` draws it.

    Attributes:
        model: the model at the last stop at which weights and losses were finite.
        average: the model with the moving average of the weights, if one was asked for.
        steps: number of steps taken at every record, shape (n,).
        losses: mean loss of the batches since the record before, shape (n,).
        evaluated: number of steps taken at every evaluation, shape (m,).
        evaluations: loss on the held-out samples there, shape (m,), with standard errors.
        loss: loss of `model` on the held-out samples at the end, with its standard error.
        result: how it ended; `result.message` names the remedy where one is needed.
        checkpoint: the last checkpoint, if a folder for them was given.
        task: which predictions count in the loss.
    """

    model: Model
    average: Model | None
    steps: np.ndarray
    losses: np.ndarray
    evaluated: np.ndarray
    evaluations: Estimate
    loss: Estimate
    result: Outcome
    checkpoint: Path | None = eqx.field(static=True)
    task: Task

    def figure(self) -> Figure:
        """The losses of batches and held-out samples over the steps, as far as they are finite.

        Raises:
            ValueError: nothing finite was recorded.
        """
        batches = self.steps, self.losses
        held_out = (
            self.evaluated,
            np.asarray(self.evaluations.value),
            np.asarray(self.evaluations.standard_error),
        )
        drawn = training_figure("Training", _finite(*batches), _finite(*held_out))
        if drawn is None:
            raise ValueError("no finite loss was recorded; set record_every or evaluate_every to fewer steps")
        return drawn

    def _explained(self) -> tuple[str, str]:
        return "meaning", self.result.message

    def _printed(self) -> tuple[str, dict[str, str]]:
        low, high = map(float, self.loss.interval())
        values = {
            self.result.value: f"after {self.steps[-1] if len(self.steps) else 0} steps",
            "held-out loss": self.task.loss_text(f"{float(self.loss):.6g} [{low:.6g}, {high:.6g}]"),
        }
        if self.checkpoint is not None:
            values["checkpoint"] = str(self.checkpoint)
        return f"Training of {type(self.model).__name__}", values


def _finite(*columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows without infinities and NaN."""
    rows = np.isfinite(np.stack(columns)).all(axis=0)
    return tuple(column[rows] for column in columns)
