"""One flow from its start to its end inside a compiled program, which can be mapped over many."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array

from ._integrate import STEADY, Bounds, Record, Segment, integrate, unmoved
from ._steady_state import Gradient, Rebuild, survey


class Limits(NamedTuple):
    """The limits of a flow, numbers.

    Attributes:
        until: flow time, infinite for the steady state.
        tolerance: of the steady state, in units of the landscape.
        rtol: relative local error allowed per step.
        atol: the absolute one, in units of the smallest weight matrix at the start.
    """

    until: Any
    tolerance: Any
    rtol: Any
    atol: Any


class _Carry(NamedTuple):
    """A flow so far, its absolute local error, and whether it is at its start, and goes on."""

    segment: Segment
    atol: Array
    begins: Array
    goes_on: Array


def to_the_end(
    gradient: Gradient,
    rebuild: Rebuild,
    start: Array,
    limits: Limits,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
    record: Record = lambda time, point, slope: (),
    rows: int = 0,
) -> Segment:
    """The whole flow as one segment.

    It goes on until it seems steady in units of the largest curvature at the start. From there it goes on in the units that a
    survey finds for every matrix, until it has not moved since the last survey.

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
        old, atol, begins, _ = carry
        here = survey(gradient, rebuild, old.point)
        atol = jnp.where(begins, limits.atol * here.smallest_matrix, atol)
        steady = limits.tolerance * jnp.where(begins, here.rate, here.rates)
        bounds = Bounds(
            old.time,
            limits.until,
            here.first_step,
            jnp.where(jnp.isfinite(limits.until), -1.0, steady),
            limits.rtol,
            atol,
        )
        new = integrate(
            gradient,
            rebuild,
            old.point,
            here.slope,
            here.steepness,
            bounds,
            solver,
            max_steps,
            record,
            rows,
            old,
        )
        moved = new.accepted + new.rejected > old.accepted + old.rejected
        return _Carry(new, atol, jnp.asarray(False), (new.code == STEADY) & (begins | moved))

    at_start = unmoved(jnp.zeros((), start.dtype), start, record, rows)
    begin = _Carry(at_start, at_start.time, jnp.asarray(True), jnp.asarray(True))
    return jax.lax.while_loop(lambda carry: carry.goes_on, onwards, begin).segment
