"""Gradient flows from many starts in one compiled call: where each of them ends."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import below_one, integer_at_least
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken
from mesascope.records import Printed

from ._integrate import AT_TIME, STEADY, checked_solver, checked_until, masked_gradient
from ._parameters import Mask, mask_vector, real_vector, refuse_weights_too_small
from ._steady_state import ATOL
from ._to_the_end import Limits, to_the_end

Model = TypeVar("Model", bound=eqx.Module)
_ACCELERATOR_BATCH = 1024


class FlowEnds(Printed, eqx.Module, Generic[Model]):
    """The ends of n gradient flows.

    Attributes:
        models: a model whose weights carry the n ends on their first axis.
        loss, gradient_norm, time: shape (n,).
        steps: solver steps, accepted and rejected, shape (n,).
        converged: which flows came to a steady state (or reached the time asked for), shape (n,).
    """

    models: Model
    loss: Array
    gradient_norm: Array
    time: Array
    steps: Array
    converged: Array

    def _printed(self) -> tuple[str, dict[str, str]]:
        lowest, highest = (f"{float(end):.10g}" for end in (self.loss.min(), self.loss.max()))
        values = {
            "converged": f"{int(self.converged.sum())} of {self.converged.size}",
            "loss": lowest if lowest == highest else f"{lowest} to {highest}",
            "gradient norm": f"≤ {float(self.gradient_norm.max()):.2e}",
        }
        return f"FlowEnds of {type(self.models).__name__}", values


def flow_ends(
    models: Model,
    process: Any,
    task: NextToken,
    *,
    engine: Engine | None = None,
    until: float | str = "steady-state",
    mask: Mask | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-12,
    tolerance: float = 1e-10,
    max_steps: int = 16_384,
) -> FlowEnds[Model]:
    """Solve θ' = −∇L(θ) from every start at once.

    On an accelerator the flows advance together (vmap); on a CPU each runs its own steps in one compiled loop, which is
    faster there because no flow waits for the slowest.

    Args:
        models: starts stacked along the first axis of their weights, e.g.
            `jax.vmap(lambda k: LinearAttention.gaussian(5, 0.1, key=k))(keys)`.
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        engine: how the expectation is computed; `ExactMoments()` by default.
        until: flow time > 0, or `"steady-state"` (as in `gradient_flow`).
        mask: entries whose gradient is masked (see `Mask`).
        solver: any diffrax solver; `diffrax.Tsit5()` by default.
        rtol: relative local error allowed per step.
        tolerance: of the steady state, as in `gradient_flow`; looser than there because nothing is tightened here.
        max_steps: limit for each flow; one that exceeds it is reported with converged = False.

    Raises:
        ValueError, TypeError: as `gradient_flow`.
    """
    limit = checked_until(until)
    integer_at_least("max_steps", max_steps, 1)
    rtol, tolerance = below_one("rtol", rtol), below_one("tolerance", tolerance)
    solver = checked_solver(solver, diffrax.Tsit5())
    weights, rest = eqx.partition(models, eqx.is_inexact_array)
    lengths = {jnp.shape(w)[:1] for w in jax.tree.leaves(weights)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError("models: weights must be stacked along one first axis, e.g. by jax.vmap over keys")
    refuse_weights_too_small(models, stacked=1)
    first = eqx.combine(jax.tree.map(lambda w: w[0], weights), rest)
    objective = objective_of(first, process, task, engine)
    limits = Limits(*np.array([limit, tolerance, rtol, ATOL * rtol]))
    return _ends(objective, models, mask_vector(first, mask), limits, solver, np.asarray(max_steps))


@eqx.filter_jit
def _ends(
    objective: Objective,
    models: eqx.Module,
    allowed: Array,
    limits: Limits,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
) -> FlowEnds[Any]:
    weights, static = eqx.partition(models, eqx.is_inexact_array)

    def one(start: eqx.Module) -> FlowEnds[Any]:
        vector, rebuild = real_vector(eqx.combine(start, static))
        gradient = jax.jit(masked_gradient(objective, rebuild, allowed))
        end = to_the_end(gradient, rebuild, vector, limits, solver, max_steps)
        model = rebuild(end.point)
        good = (end.code == STEADY) | (end.code == AT_TIME)
        return FlowEnds(
            eqx.filter(model, eqx.is_inexact_array),
            objective(model).value,
            jnp.linalg.norm(end.slope),
            end.time,
            end.accepted + end.rejected,
            good & jnp.isfinite(end.point).all(),
        )

    batch = None if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH
    ends = jax.lax.map(one, weights, batch_size=batch)
    return eqx.tree_at(lambda it: it.models, ends, eqx.combine(ends.models, static))
