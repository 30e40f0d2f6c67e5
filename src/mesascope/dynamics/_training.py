"""What a training run leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import equinox as eqx
import numpy as np

from mesascope.core import Estimate
from mesascope.records import Figure, html_table, training_figure

from ._outcome import Outcome

Model = TypeVar("Model", bound=eqx.Module)


class Training(eqx.Module, Generic[Model]):
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

    def __repr__(self) -> str:
        steps, loss = self._values().values()
        end = f"{self.result.value} after {steps} steps"
        return f"<Training: {end}; held-out loss {loss}; of {type(self.model).__name__}>"

    def _repr_html_(self) -> str:
        rows = {self.result.value: self.result.message, **self._values()}
        if self.checkpoint is not None:
            rows["checkpoint"] = str(self.checkpoint)
        return html_table(f"Training of {type(self.model).__name__}", rows.items())

    def _values(self) -> dict[str, str]:
        low, high = map(float, self.loss.interval())
        return {
            "steps": str(self.steps[-1] if len(self.steps) else 0),
            "held-out loss": f"{float(self.loss):.6g} [{low:.6g}, {high:.6g}]",
        }


def _finite(*columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows without infinities and NaN."""
    rows = np.isfinite(np.stack(columns)).all(axis=0)
    return tuple(column[rows] for column in columns)
