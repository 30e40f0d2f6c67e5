"""Many flows of many objectives in one compiled call: where each ends, and when it has come most of the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.objectives import Objective

from .._integrate import AT_TIME, FAILED, RUNNING, STEADY, masked_gradient
from .._parameters import real_vector
from .._to_the_end import Limits, to_the_end

_BISECTIONS = 40

# Powers of u from value, slope and second derivative at u = 0 and at u = 1.
_QUINTIC = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0.5, 0, 0, 0],
        [-10, -6, -1.5, 10, -4, 0.5],
        [15, 8, 1.5, -15, 7, -1],
        [-6, -3, -0.5, 6, -3, 0.5],
    ]
)

CONVERGED, FINISHED, STEP_LIMIT, DIVERGED, NOT_RESOLVED = range(5)
_CODES = np.zeros(4, int)
_CODES[[STEADY, AT_TIME, RUNNING, FAILED]] = CONVERGED, FINISHED, STEP_LIMIT, DIVERGED
_ROUNDING = 1e-9


class FlowFacts(NamedTuple):
    """What is stored of every flow, arrays over flows.

    Attributes:
        end: weights at the end, in the coordinates of `real_vector`.
        code: how it ended.
        loss_start, loss, loss_zero: at the start, at the end, and of weights that are all 0.
        risk: the loss of the test objective at the end, NaN without one.
        gradient_norm, time, steps: at the end.
        time_to_reach: when the loss had made the given fraction of its way from start to end.
    """

    end: Array
    code: Array
    loss_start: Array
    loss: Array
    loss_zero: Array
    risk: Array
    gradient_norm: Array
    time: Array
    steps: Array
    time_to_reach: Array


@eqx.filter_jit
def solve_flows(
    objectives: Objective,
    tests: Objective | None,
    starts: eqx.Module,
    allowed: Array,
    numbers: Array,
    solver: diffrax.AbstractSolver,
    max_steps: int,
) -> FlowFacts:
    """Solve θ' = −∇L_n(θ) for objectives, tests and starts stacked along the first axis of their arrays.

    Args:
        objectives: what flow n descends.
        tests: what its end is judged by.
        starts: where it starts.
        allowed: 1 where the gradient passes, in the coordinates of `real_vector`.
        numbers: until which time, tolerance of the steady state, rtol, fraction of the way.
        solver: any diffrax solver.
        max_steps: limit for each flow.
    """
    parts, static = eqx.partition((objectives, tests, starts), eqx.is_array)

    def one(part: Any) -> FlowFacts:
        objective, test, start = eqx.combine(part, static)
        return _solve(objective, test, start, allowed, numbers, solver, max_steps)

    return jax.lax.map(one, parts)


def _solve(
    objective: Objective,
    test: Objective | None,
    start: eqx.Module,
    allowed: Array,
    numbers: Array,
    solver: diffrax.AbstractSolver,
    max_steps: int,
) -> FlowFacts:
    limit, tolerance, rtol, fraction = numbers
    vector, rebuild = real_vector(start)
    gradient = jax.jit(masked_gradient(objective, rebuild, allowed))

    def height(y: Array, slope: Array) -> Array:
        """L and its first two time derivatives along the flow, −‖∇L‖² and 2 ∇L·H∇L."""
        _, bend = jax.jvp(gradient, (y,), (slope,))
        return jnp.stack([objective(rebuild(y)).value, -slope @ slope, 2 * slope @ bend])

    flow = to_the_end(
        gradient,
        rebuild,
        vector,
        Limits(limit, tolerance, rtol, rtol),
        solver,
        max_steps,
        record=lambda time, point, slope: (time, height(point, slope)),
        rows=max_steps,
    )
    times, heights = flow.records
    first = height(vector, gradient(vector))
    times, heights = jnp.insert(times, 0, 0.0), jnp.concatenate([first[None], heights])
    model = rebuild(flow.point)
    loss, zero = jax.lax.map(lambda y: objective(rebuild(y)).value, jnp.stack([flow.point, 0 * vector]))
    code = jnp.asarray(_CODES)[flow.code]
    code = jnp.where(_not_resolved(code, loss, zero), NOT_RESOLVED, code)
    finite = jnp.isfinite(flow.point).all() & jnp.isfinite(loss)
    return FlowFacts(
        end=flow.point,
        code=jnp.where(finite, code, DIVERGED),
        loss_start=first[0],
        loss=loss,
        loss_zero=zero,
        risk=jnp.full_like(loss, jnp.nan) if test is None else test(model).value,
        gradient_norm=jnp.linalg.norm(flow.slope),
        time=flow.time,
        steps=flow.accepted + flow.rejected,
        time_to_reach=_passes(times, heights, fraction * loss + (1 - fraction) * first[0]),
    )


def _not_resolved(code: Array, loss: Array, zero: Array) -> Array:
    """Whether rounding hides the end.

    No loss is negative. Along cW^PV the loss is Ac² − Bc + L(0) with A ≥ 0, and B = 2A at a critical point: none lies above
    L(0).
    """
    return ((code == CONVERGED) & (loss > (1 + _ROUNDING) * zero)) | (loss < -_ROUNDING * zero)


def _passes(times: Array, heights: Array, target: Array) -> Array:
    """The time at which a falling curve reaches `target`; between points it is the quintic with their two derivatives.

    Args:
        times: shape (n,).
        heights: value, slope and second derivative, shape (n, 3); infinite beyond the end.
        target: between the first and the last value.
    """
    right = jnp.argmax(heights[:, 0] <= target)
    left = jnp.maximum(right - 1, 0)
    width = times[right] - times[left]
    powers = width ** jnp.arange(3)
    values = jnp.concatenate([heights[left] * powers, heights[right] * powers])
    coefficients = jnp.asarray(_QUINTIC) @ values

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        above = coefficients @ middle ** jnp.arange(6) > target
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros(()), jnp.ones(())))
    return jnp.where(right > 0, times[left] + width * (low + high) / 2, 0.0)
