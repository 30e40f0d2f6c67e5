"""The loss of a training run on its held-out samples."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax

from mesascope.core import Estimate
from mesascope.objectives import MonteCarlo, Task, population_loss

from ._training_settings import TrainingSettings


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
