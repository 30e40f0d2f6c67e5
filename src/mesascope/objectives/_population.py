"""The population loss of a model."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from mesascope.core import Estimate
from mesascope.processes import SymbolProcess, TrainingSet
from mesascope.specs import show

from ._engine import Objective
from ._engines import Engine, Enumeration, ExactMoments
from ._sample_losses import Task, check_task


def population_loss(model: eqx.Module, process: Any, task: Task, engine: Engine | None = None) -> Estimate:
    """Return L = Σ_{t=2}^{T−1} w_t ½ E‖ŷ_t − x_{t+1}‖² (zheng2024, equation (3), with a weight per context length).

    For discrete tokens or prompts it is the expectation of `sample_losses`. `ExactMoments` supports prompts only for one
    layer of linear attention, or steps of `preconditioned_linear_transformer` and `step_size_transformer` (up to three, or up
    to 48 with a multiple of Σ⁻¹ as the metric), on `LinearRegression`, a `TaskPool` of it, `InWeightsRegression` and mixtures
    of them; all other cases with discrete tokens or prompts need `MonteCarlo`.

    Args:
        model: a model of sequences or prompts; the exact engines need linear attention.
        process: the process of the data, e.g. `DiagonalUnitary(law, dim)`.
        task: horizon T, or number of examples N, and weights w_t.
        engine: the method to compute the expectation; by default `ExactMoments()`; on a `TrainingSet`, and
            on `Urns`, `MarkovChains` and their pools, `Enumeration()`.

    Returns:
        The value and its standard error (0 for exact engines). `.value` can be differentiated in the model's
        weights; `jax.grad` of it in a *complex* weight is the conjugate of the direction of ascent.

    Raises:
        TypeError: for a model or process that the engine does not support; the message gives the engine that does.
        ValueError: for a law without the moments in the loss, shapes that do not fit, or 64-bit mode off (exact
            engines).
    """
    return objective_of(model, process, task, engine)(model)


def _exact_engine(process: Any) -> Engine:
    """The engine by default."""
    return Enumeration() if isinstance(process, TrainingSet | SymbolProcess) else ExactMoments()


def objective_of(model: Any, process: Any, task: Task, engine: Engine | None) -> Objective:
    """Return the objective of a process and task for a model, with all arguments checked.

    Raises:
        TypeError: `task` or `engine` has the wrong type, or the engine does not support the process.
        ValueError: the loss is not that of this model.
    """
    check_task(process, task)
    chosen = _exact_engine(process) if engine is None else engine
    if not isinstance(chosen, Engine):
        raise TypeError(f"engine: must be ExactMoments(), Enumeration() or MonteCarlo(…), got {show(engine)}")
    objective = chosen.objective(process, task, getattr(model, "normalizer", "t-1"))
    objective.check(model)
    return objective
