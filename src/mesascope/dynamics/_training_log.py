"""What a training run has recorded so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from mesascope.core import Estimate


@dataclass
class TrainingLog:
    """Losses at the records and on held-out samples.

    Attributes:
        steps, losses: number of steps at every record, and the mean loss of the batches since the one before.
        evaluated, values, errors: number of steps at every evaluation, held-out loss and its standard error.
        pending, pending_steps: sum of the losses since the last record, and over how many steps.
    """

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    evaluated: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    pending: float = 0.0
    pending_steps: int = 0

    def add(self, total: float, count: int) -> None:
        """Add `count` steps; `total` is the sum of the losses since the last record."""
        self.pending = total
        self.pending_steps += count

    def record(self, step: int) -> None:
        """Close the record that ends at `step`, if there were steps since the one before."""
        if self.pending_steps:
            self.steps.append(step)
            self.losses.append(self.pending / self.pending_steps)
            self.pending, self.pending_steps = 0.0, 0

    def evaluate(self, step: int, value: float, error: float) -> None:
        """Add the held-out loss after `step` steps."""
        self.evaluated.append(step)
        self.values.append(value)
        self.errors.append(error)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Estimate]:
        """Steps and losses of the records, steps and losses of the evaluations."""
        evaluations = Estimate(jnp.array(self.values), jnp.array(self.errors))
        steps, evaluated = np.array(self.steps, int), np.array(self.evaluated, int)
        return steps, np.array(self.losses, float), evaluated, evaluations
