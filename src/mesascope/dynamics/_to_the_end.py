"""One flow from its start to its end inside a compiled program, which can be mapped over many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array

from ._integrate import STEADY, Bounds, Segment, integrate
from ._steady_state import Gradient, Rebuild, survey


class Limits(NamedTuple):
    """The limits of a flow, numbers.

    Attributes:
        until: flow time, infinite for the steady state.
        tolerance: of the steady state, in units of the landscape.
        rtol: relative local error allowed per step.
        atol: the absolute one, in units of the smallest weight matrix.
    """

    until: Any
    tolerance: Any
    rtol: Any
    atol: Any


class _Carry(NamedTuple):
    """A flow so far, its steps, and whether it is at its start, and goes on."""

    segment: Segment
    steps: Array
    begins: Array
    goes_on: Array


def to_the_end(
    gradient: Gradient,
    rebuild: Rebuild,
    start: Array,
    limits: Limits,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
    record: Callable[[Array, Array, Array], Any] = lambda time, point, slope: (),
    rows: int = 0,
) -> tuple[Segment, Array]:
    """The end of a flow, with the records of its first part, and its steps, accepted and rejected.

    The first part ends where the flow seems steady in units of the largest curvature at the start. From there it goes on in the
    units that a survey finds for every matrix, until it has not moved since the last survey.

    Args:
        gradient: ∇L.
        rebuild: from real vectors to models.
        start: θ, shape (n,).
        limits: time, steady state and local errors.
        solver: any diffrax solver.
        max_steps: limit on steps.
        record: what to record of every accepted step, as in `integrate`.
        rows: room for records, at least `max_steps` if there is something to record.
    """

    def onwards(carry: _Carry) -> _Carry:
        old, steps, begins, _ = carry
        here = survey(gradient, rebuild, old.point)
        steady = limits.tolerance * jnp.where(begins, here.rate, here.rates)
        bounds = Bounds(
            old.time,
            limits.until,
            here.first_step,
            jnp.where(jnp.isfinite(limits.until), -1.0, steady),
            limits.rtol,
            limits.atol * here.smallest_matrix,
        )
        new = integrate(
            gradient,
            rebuild,
            old.point,
            here.slope,
            here.steepness,
            bounds,
            solver,
            max_steps - steps,
            record,
            rows,
        )
        first = jax.tree.map(lambda a, b: jnp.where(begins, a, b), new.records, old.records)
        taken = new.accepted + new.rejected
        goes_on = (new.code == STEADY) & (begins | (taken > 0))
        return _Carry(new._replace(records=first), steps + taken, jnp.asarray(False), goes_on)

    none, time = jnp.asarray(0), jnp.zeros((), start.dtype)
    shapes = jax.eval_shape(record, time, start, start)
    records = jax.tree.map(lambda one: jnp.full((rows + 1, *one.shape), jnp.inf, one.dtype), shapes)
    at_start = Segment(time, start, jnp.zeros_like(start), none, none, none, records)
    begin = _Carry(at_start, none, jnp.asarray(True), jnp.asarray(True))
    end, steps, _, _ = jax.lax.while_loop(lambda carry: carry.goes_on, onwards, begin)
    return end, steps
