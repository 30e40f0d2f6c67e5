"""Gradient flows from many starts in one compiled call: where each of them ends."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

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

from ._integrate import (
    AT_TIME,
    STEADY,
    Bounds,
    Segment,
    checked_solver,
    checked_until,
    integrate,
    masked_gradient,
)
from ._parameters import Mask, mask_vector, real_vector, refuse_weights_too_small
from ._steady_state import Gradient, Rebuild, survey

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
    bounds = np.array([limit, tolerance, rtol], float)
    return _ends(objective, models, mask_vector(first, mask), bounds, solver, np.asarray(max_steps))


class _Carry(NamedTuple):
    """A flow so far, its steps, and whether it is at its start, and goes on."""

    segment: Segment
    steps: Array
    begins: Array
    goes_on: Array


@eqx.filter_jit
def _ends(
    objective: Objective,
    models: eqx.Module,
    allowed: Array,
    bounds: Any,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
) -> FlowEnds[Any]:
    weights, static = eqx.partition(models, eqx.is_inexact_array)

    def one(start: eqx.Module) -> FlowEnds[Any]:
        vector, rebuild = real_vector(eqx.combine(start, static))
        gradient = jax.jit(masked_gradient(objective, rebuild, allowed))
        end, steps = _to_the_end(gradient, rebuild, vector, bounds, solver, max_steps)
        model = rebuild(end.point)
        good = (end.code == STEADY) | (end.code == AT_TIME)
        return FlowEnds(
            eqx.filter(model, eqx.is_inexact_array),
            objective(model).value,
            jnp.linalg.norm(end.slope),
            end.time,
            steps,
            good & jnp.isfinite(end.point).all(),
        )

    batch = None if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH
    ends = jax.lax.map(one, weights, batch_size=batch)
    return eqx.tree_at(lambda it: it.models, ends, eqx.combine(ends.models, static))


def _to_the_end(
    gradient: Gradient,
    rebuild: Rebuild,
    start: Array,
    limits: Any,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
) -> tuple[Segment, Array]:
    """The end of a flow, and its steps.

    It goes on until it seems steady in units of the largest curvature at the start. From there it goes on in the units that a
    survey finds for every matrix, until it has not moved since the last survey.
    """
    limit, tolerance, rtol = limits

    def onwards(carry: _Carry) -> _Carry:
        old, steps, begins, _ = carry
        here = survey(gradient, rebuild, old.point)
        steady = tolerance * jnp.where(begins, here.rate, here.rates)
        bounds = Bounds(
            old.time,
            limit,
            here.first_step,
            jnp.where(jnp.isfinite(limit), -1.0, steady),
            rtol,
            here.atol(rtol),
        )
        left = max_steps - steps
        new = integrate(gradient, rebuild, old.point, here.slope, here.steepness, bounds, solver, left)
        taken = new.accepted + new.rejected
        return _Carry(new, steps + taken, jnp.asarray(False), (new.code == STEADY) & (begins | (taken > 0)))

    none = jnp.asarray(0)
    at_start = Segment(jnp.zeros((), start.dtype), start, jnp.zeros_like(start), none, none, none, ())
    end, steps, _, _ = jax.lax.while_loop(
        lambda carry: carry.goes_on, onwards, _Carry(at_start, none, jnp.asarray(True), jnp.asarray(True))
    )
    return end, steps
