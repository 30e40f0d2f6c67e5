"""How to train, and on what the result is evaluated."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from mesascope.core import Estimate, finite_number, finite_positive, integer_at_least
from mesascope.objectives import PRECISIONS, MonteCarlo, Task, population_loss

from ._optimizer import Optimizer

if TYPE_CHECKING:
    import optax


@dataclass(frozen=True)
class TrainingSettings:
    """How to train; see `train` for every field."""

    optimizer: Optimizer | optax.GradientTransformation = field(default_factory=Optimizer)
    steps: int = 1000
    batch: int = 256
    precision: str = "float32"
    average: float | None = None
    held_out: int = 4096
    record_every: int = 50
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    checkpoint_minutes: float = 5.0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1), ("held_out", 2), ("record_every", 1)):
            self._set(name, integer_at_least(name, getattr(self, name), least))
        for name in ("evaluate_every", "checkpoint_every"):
            if getattr(self, name) is not None:
                self._set(name, integer_at_least(name, getattr(self, name), 1))
        self._set("checkpoint_minutes", float(finite_positive("checkpoint_minutes", self.checkpoint_minutes)))
        if self.precision not in PRECISIONS:
            known = ", ".join(map(repr, PRECISIONS))
            raise ValueError(f"precision: must be one of {known}, got {self.precision!r}")
        if self.average is not None:
            self._set("average", float(finite_number("average", self.average)))
            if not 0 < self.average < 1:
                raise ValueError(
                    f"average: the decay must lie between 0 and 1, such as 0.999, got {self.average}"
                )
        if not hasattr(self.optimizer, "init") and not isinstance(self.optimizer, Optimizer):
            raise TypeError(
                f"optimizer: must be Optimizer(…) or an optax optimizer such as optax.adam(1e-3), got {self.optimizer!r}"
            )

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    def transformation(self) -> Any:
        """The optax transformation."""
        return self.optimizer.build(self.steps) if isinstance(self.optimizer, Optimizer) else self.optimizer

    def next_stop(self, taken: int) -> int:
        """The next step with something to do: record, evaluate, save or end."""
        every = (self.record_every, self.evaluate_every, self.checkpoint_every)
        return min(self.steps, *(taken + n - taken % n for n in every if n is not None))

    def is_due(self, every: int | None, taken: int) -> bool:
        """Whether something that is done every `every` steps is due after `taken` steps."""
        return every is not None and taken % every == 0


def in_precision(precision: str) -> AbstractContextManager[Any]:
    """32-bit mode unless float64 is asked for: samples are drawn, not only used, in the precision of the run."""
    return jax.enable_x64(precision == "float64")


def held_out_loss(model: Any, process: Any, task: Task, settings: TrainingSettings, seed: int) -> Estimate:
    """The loss on the held-out samples of a training run, the same ones for every model.

    Args:
        model: anything with `predictions`, such as the `average` of a run.
        process: of the run.
        task: of the run.
        settings: of the run; `held_out`, `batch` and `precision` decide (bfloat16 is evaluated in float32).
        seed: of the run.

    Returns:
        Mean and standard error over `settings.held_out` samples.

    Raises:
        ValueError, TypeError: parts that do not fit, as `population_loss`.
    """
    precision = "float64" if settings.precision == "float64" else "float32"
    with in_precision(precision):
        engine = MonteCarlo(settings.held_out, seed, min(settings.batch, settings.held_out), precision)
        return population_loss(model, process, task, engine)
