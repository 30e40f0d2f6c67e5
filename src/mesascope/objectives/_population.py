"""One verb: the population loss of a model."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from mesascope.core import Estimate

from ._engine import Objective
from ._engines import Engine, ExactMoments
from ._sample_losses import Task, check_task


def population_loss(model: eqx.Module, process: Any, task: Task, engine: Engine | None = None) -> Estimate:
    """L = Σ_{t=2}^{T−1} w_t ½ E‖ŷ_t − x_{t+1}‖² (zheng2024, equation (3), with a weight per context length).

    With discrete tokens or prompts it is the expectation of what `sample_losses` says. `ExactMoments` treats one layer of
    linear attention on prompts of `LinearRegression`; all others of these need `MonteCarlo`.

    Args:
        model: a sequence model; the exact engines need linear attention.
        process: what generates the sequences, e.g. `DiagonalUnitary(law, dim)`.
        task: horizon T, or number of examples N, and weights w_t.
        engine: how the expectation is computed; `ExactMoments()` by default.

    Returns:
        The value and its standard error (0 for exact engines). `.value` can be differentiated in the model's
        weights; `jax.grad` of it in a *complex* weight is the conjugate of the direction of ascent.

    Raises:
        TypeError: for a model or process that the engine cannot treat; the message names the engine that can.
        ValueError: for a law without the moments needed, shapes that do not fit, or 64-bit mode off (exact
            engines).
    """
    return objective_of(model, process, task, engine)(model)


def objective_of(model: Any, process: Any, task: Task, engine: Engine | None) -> Objective:
    """The objective that a verb speaks about, with its arguments checked.

    Raises:
        TypeError: `task` or `engine` is something else, or the engine cannot treat the process.
    """
    check_task(process, task)
    chosen = ExactMoments() if engine is None else engine
    if not isinstance(chosen, Engine):
        raise TypeError(f"engine: must be ExactMoments(), Enumeration() or MonteCarlo(…), got {engine!r}")
    return chosen.objective(process, task, getattr(model, "normalizer", "t-1"))
