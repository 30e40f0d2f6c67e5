"""The solver of all gradient flows: steps of a diffrax solver until a steady state, the end time or the limit of steps.

This loop compiles the gradient once, in its steps; `diffrax.diffeqsolve` would compile it at the start, in the steps and in
the test of its events.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_positive
from mesascope.objectives import Objective
from mesascope.specs import show

from ._rodas4 import Rodas4
from ._steady_state import Gradient, Rebuild, steepness

RUNNING, STEADY, AT_TIME, FAILED = range(4)
_ROUNDING = 100 * float(np.finfo(float).eps)


Record = Callable[[Array, Array, Array], Any]
"""What is recorded of a step, from the time, point and slope at its end."""


class Bounds(NamedTuple):
    """The limits of a flow.

    Attributes:
        begin, end: flow times; the end may be infinite.
        first_step: size of the first step.
        steepness: the flow is in a steady state if `steepness` of every matrix is at most this, shape (number of matrices,) or
            (); negative numbers switch this off.
        rtol, atol: relative and absolute local error allowed per step.
    """

    begin: Any
    end: Any
    first_step: Any
    steepness: Any
    rtol: Any
    atol: Any


class Segment(NamedTuple):
    """A piece of a flow.

    Attributes:
        time, point, slope: at the end; slope is ∇L.
        code: RUNNING (out of steps), STEADY, AT_TIME or FAILED.
        accepted, rejected: steps.
        records: of accepted steps, one after another; the entries after them are undefined.
    """

    time: Array
    point: Array
    slope: Array
    code: Array
    accepted: Array
    rejected: Array
    records: Any


class _State(NamedTuple):
    segment: Segment
    ahead: Any  # the time that the next step tries to reach
    solver: Any


def integrate(
    gradient: Gradient,
    rebuild: Rebuild,
    start: Array,
    slope: Array,
    steep: Array,
    bounds: Bounds,
    solver: diffrax.AbstractSolver,
    max_steps: Array | int,
    record: Record = lambda time, point, slope: (),
    rows: int = 0,
    so_far: Segment | None = None,
) -> Segment:
    """Solve θ' = −∇L(θ); can be mapped by `jax.vmap`, where flows that have ended wait for the others.

    Args:
        gradient: ∇L.
        rebuild: from real vectors to models.
        start: θ, shape (n,).
        slope: ∇L there.
        steep: the steepness there.
        bounds: times, steady state and local errors.
        solver: any diffrax solver of ordinary differential equations that estimates its error.
        max_steps: accepted and rejected.
        record: what to record of every accepted step, from the time, point and slope at its end.
        rows: room for records, at least `max_steps` if there is something to record.
        so_far: the flow until here, whose steps count and whose records are continued.
    """
    begin = jnp.asarray(bounds.begin, jnp.result_type(bounds.end))
    kind = jnp.result_type(start, begin)
    start, slope, steep = (one.astype(kind) for one in (start, slope, steep))
    gradient = jax.jit(gradient)  # traced once
    term = diffrax.ODETerm(lambda t, y, args: -gradient(y))
    controller = diffrax.PIDController(bounds.rtol, bounds.atol)  # used without a memory of earlier steps
    solver = _as_in_diffeqsolve(solver, controller)
    order: Any = solver.error_order(term)
    # the last stage of a step is the first of the next: the state (whether there is no such stage, the stage) is known
    erk = isinstance(solver, diffrax.AbstractERK) and bool(getattr(solver.tableau, "fsal", False))
    reuses = erk or isinstance(solver, Rodas4)
    ahead, memory = controller.init(
        term, begin, bounds.end, start, bounds.first_step, None, solver.func, order
    )
    ahead = jnp.minimum(ahead, bounds.end)

    def ended(time: Array, steep: Array, failed: Any) -> Array:
        ends = [(steep <= bounds.steepness).all(), failed, time >= bounds.end]
        return jnp.select(ends, [STEADY, FAILED, AT_TIME], RUNNING)

    def is_going(segment: Segment) -> Array:
        return (segment.code == RUNNING) & (segment.accepted + segment.rejected < max_steps)

    def step(state: _State) -> _State:
        old, going = state.segment, is_going(state.segment)
        inner = (jnp.asarray(False), -old.slope) if reuses else state.solver
        point, error, _, inner, result = solver.step(
            term, old.time, state.ahead, old.point, None, inner, made_jump=False
        )
        error = None if error is None else jnp.where(jnp.isnan(error), jnp.inf, error)
        keep, _, ahead, *_ = controller.adapt_step_size(
            old.time, state.ahead, old.point, point, None, error, order, memory
        )
        # without a barrier the compiler would compute these again for everything that depends on them
        keep, ahead = jax.lax.optimization_barrier((keep & going, ahead))
        time, slope = state.ahead, -inner[1] if reuses else gradient(point)
        steep = steepness(rebuild, slope, point)
        failed = jnp.asarray(result != diffrax.RESULTS.successful)
        moved = time, point, slope, ended(time, steep, failed)
        time, point, slope, code = _where(keep, moved, old[: len(moved)])
        records = jax.tree.map(
            lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, old.accepted, 0),
            old.records,
            record(time, point, slope),
        )
        accepted, rejected = old.accepted + keep, old.rejected + (going & ~keep)
        last = jnp.where(keep, bounds.end, (time + bounds.end) / 2)
        ahead = jnp.where(ahead > bounds.end * (1 - _ROUNDING), last, ahead)
        return _State(
            Segment(time, point, slope, code, accepted, rejected, records),
            jnp.where(going, ahead, state.ahead),
            None if reuses else _where(keep, inner, state.solver),
        )

    here = unmoved(begin, start, record, rows) if so_far is None else so_far
    first = here._replace(time=begin, slope=slope, code=ended(begin, steep, jnp.asarray(False)))
    inner = None if reuses else solver.init(term, begin, ahead, start, None)
    state = _State(first, ahead, inner)
    return jax.lax.while_loop(lambda state: eqxi.unvmap_any(is_going(state.segment)), step, state).segment


def unmoved(time: Array, start: Array, record: Record, rows: int) -> Segment:
    """A flow that has not taken a step, with room for records; slope and code are not known yet."""
    shapes = jax.eval_shape(record, time, start, start)
    # a row more than needed, for steps that are not kept
    records = jax.tree.map(lambda one: jnp.full((rows + 1, *one.shape), jnp.inf, one.dtype), shapes)
    none = jnp.asarray(0)
    return Segment(time, start, jnp.zeros_like(start), none, none, none, records)


def _where(chosen: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), new, old)


def _as_in_diffeqsolve(
    solver: diffrax.AbstractSolver, controller: diffrax.PIDController
) -> diffrax.AbstractSolver:
    """The solver as `diffeqsolve` prepares it: loops without reverse mode, root finders with the tolerances of the steps."""
    if isinstance(solver, diffrax.AbstractRungeKutta) and solver.scan_kind is None:
        solver = eqx.tree_at(lambda it: it.scan_kind, solver, "lax", is_leaf=lambda leaf: leaf is None)
    if isinstance(solver, diffrax.AbstractImplicitSolver):
        unset = diffrax.Kvaerno5().root_finder.rtol
        names = [name for name in ("rtol", "atol", "norm") if getattr(solver.root_finder, name) is unset]
        solver = eqx.tree_at(
            lambda it: [getattr(it.root_finder, name) for name in names],
            solver,
            [getattr(controller, name) for name in names],
        )
    return solver


def masked_gradient(
    objective: Objective, rebuild: Callable[[Array], eqx.Module], allowed: Array
) -> Callable[[Array], Array]:
    """∇L in real coordinates, zero where masked."""
    return lambda vector: allowed * jax.grad(lambda v: objective(rebuild(v)).value)(vector)


def checked_until(until: float | str) -> float:
    """The flow time, infinite for the steady state."""
    if until == "steady-state":
        return math.inf
    if isinstance(until, str):
        raise ValueError(f"until: {show(until)} is unknown; give a flow time or 'steady-state'")
    return float(finite_positive("until", until))


def checked_solver(
    solver: diffrax.AbstractSolver | None, usual: diffrax.AbstractSolver
) -> diffrax.AbstractSolver:
    """The solver, or the default if none is given."""
    if solver is None:
        return usual
    if not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(f"solver: must be a diffrax solver such as diffrax.Tsit5(), got {show(solver)}")
    return solver
