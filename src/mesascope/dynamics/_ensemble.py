"""Gradient flows from many starts in one compiled call: where each of them ends."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import finite_positive, integer_at_least
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken

from ._flow import checked_until, masked_gradient
from ._parameters import Mask, mask_vector, real_vector
from ._rest import curvature, matrix_sizes, rest_event

Model = TypeVar("Model", bound=eqx.Module)
_ACCELERATOR_BATCH = 1024


class FlowEnds(eqx.Module, Generic[Model]):
    """The ends of n gradient flows.

    Attributes:
        models: a model whose weights carry the n ends on their first axis.
        loss, gradient_norm, time: shape (n,).
        steps: solver steps, accepted and rejected, shape (n,).
        converged: which flows came to rest (or reached the time asked for), shape (n,).
    """

    models: Model
    loss: Array
    gradient_norm: Array
    time: Array
    steps: Array
    converged: Array


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
        tolerance: of the steady state, in units of the curvature at the start; looser than in `gradient_flow`
            because nothing is tightened here.
        max_steps: limit for each flow; one that exceeds it is reported with converged = False.

    Raises:
        ValueError, TypeError: as `gradient_flow`.
    """
    limit = checked_until(until)
    integer_at_least("max_steps", max_steps, 1)
    for name, value in (("rtol", rtol), ("tolerance", tolerance)):
        finite_positive(name, value)
    objective = objective_of(models, process, task, engine)
    if solver is not None and not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(f"solver: must be a diffrax solver such as diffrax.Tsit5(), got {solver!r}")
    weights, rest = eqx.partition(models, eqx.is_inexact_array)
    lengths = {jnp.shape(w)[:1] for w in jax.tree.leaves(weights)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError("models: weights must be stacked along one first axis, e.g. by jax.vmap over keys")
    first = eqx.combine(jax.tree.map(lambda w: w[0], weights), rest)
    allowed = mask_vector(first, mask)
    stepper = solver or diffrax.Tsit5()
    bounds = jnp.asarray((limit, tolerance, rtol), float)
    ends = _solve(objective, models, allowed, bounds, stepper, max_steps)
    return FlowEnds(*ends)


@eqx.filter_jit
def _solve(
    objective: Objective,
    models: eqx.Module,
    allowed: Array,
    bounds: Array,
    solver: diffrax.AbstractSolver,
    max_steps: int,
) -> tuple[Any, ...]:
    limit, tolerance, rtol = bounds
    weights, static = eqx.partition(models, eqx.is_inexact_array)

    def one(start: eqx.Module) -> tuple[Any, ...]:
        vector, rebuild = real_vector(eqx.combine(start, static))
        gradient = masked_gradient(objective, rebuild, allowed)
        rate = curvature(gradient, vector)
        bound = jnp.where(jnp.isfinite(limit), -1.0, tolerance * rate)
        sizes = matrix_sizes(start)
        smallest = jnp.min(jnp.where(sizes > 0, sizes, jnp.inf))
        atol = 1e-3 * rtol * jnp.where(jnp.isfinite(smallest), smallest, 1.0)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: -gradient(y)),
            solver,
            0.0,
            limit,
            jnp.where(rate > 0, 0.01 / rate, 1.0),
            vector,
            stepsize_controller=diffrax.PIDController(rtol, atol),
            max_steps=max_steps,
            event=diffrax.Event(rest_event(gradient, rebuild, bound)),
            throw=False,
        )
        end = solution.ys[-1]
        model = rebuild(end)
        good = (solution.result == diffrax.RESULTS.event_occurred) | (
            solution.result == diffrax.RESULTS.successful
        )
        return (
            eqx.filter(model, eqx.is_inexact_array),
            objective(model).value,
            jnp.linalg.norm(gradient(end)),
            solution.ts[-1],
            solution.stats["num_steps"],
            good & jnp.isfinite(end).all(),
        )

    batch = None if jax.default_backend() == "cpu" else _ACCELERATOR_BATCH
    ends = jax.lax.map(one, weights, batch_size=batch)
    return (eqx.combine(ends[0], static), *ends[1:])
