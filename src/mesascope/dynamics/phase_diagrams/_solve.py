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

from .._flow import masked_gradient
from .._parameters import real_vector
from .._rest import curvature, matrix_sizes, rest_event

_BISECTIONS = 40
_NEAR_ORIGIN = 1e-3

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
_ROUNDING = 1e-9
_STEEP = 1e-4  # flows from weights of ordinary size come to rest below 1e-6


class FlowFacts(NamedTuple):
    """What is kept of every flow, arrays over flows.

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
        numbers: until which time, tolerance of rest, rtol, fraction of the way.
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
    gradient = masked_gradient(objective, rebuild, allowed)
    rate = curvature(gradient, vector)
    # large weights bend the landscape more than the end will: rest in the units of the flatter of two places
    origin = curvature(gradient, _NEAR_ORIGIN * vector)
    flattest = jnp.where(origin > 0, jnp.minimum(rate, origin), rate)
    bound = jnp.where(jnp.isfinite(limit), -1.0, tolerance * flattest)
    sizes = matrix_sizes(start)
    smallest = jnp.min(jnp.where(sizes > 0, sizes, jnp.inf))
    atol = rtol * jnp.where(jnp.isfinite(smallest), smallest, 1.0)

    def height(t: Array, y: Array, args: Any) -> tuple[Array, Array]:
        slope, bend = jax.jvp(gradient, (y,), (gradient(y),))
        # dL/dt = −‖∇L‖² and d²L/dt² = 2 ∇L·H∇L along the flow
        return t, jnp.stack([objective(rebuild(y)).value, -slope @ slope, 2 * slope @ bend])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -gradient(y)),
        solver,
        0.0,
        limit,
        jnp.where(rate > 0, 0.01 / rate, 1.0),
        vector,
        saveat=diffrax.SaveAt(
            subs=[diffrax.SubSaveAt(t0=True, steps=True, fn=height), diffrax.SubSaveAt(t1=True)]
        ),
        stepsize_controller=diffrax.PIDController(rtol, atol),
        max_steps=max_steps,
        event=diffrax.Event(rest_event(gradient, rebuild, bound)),
        throw=False,
    )
    (times, heights), ends = solution.ys
    end, loss_start = ends[-1], heights[0, 0]
    model = rebuild(end)
    loss = objective(model).value
    result = solution.result
    ended = [
        result == diffrax.RESULTS.event_occurred,
        result == diffrax.RESULTS.successful,
        result == diffrax.RESULTS.max_steps_reached,
    ]
    code = jnp.select(ended, [CONVERGED, FINISHED, STEP_LIMIT], DIVERGED)
    zero = objective(rebuild(0 * vector)).value
    slope = gradient(end)
    steep = jnp.max(matrix_sizes(rebuild(slope)) * matrix_sizes(model))
    code = jnp.where(_not_resolved(code, loss, steep, zero), NOT_RESOLVED, code)
    finite = jnp.isfinite(end).all() & jnp.isfinite(loss)
    return FlowFacts(
        end=end,
        code=jnp.where(finite, code, DIVERGED),
        loss_start=loss_start,
        loss=loss,
        loss_zero=zero,
        risk=jnp.full_like(loss, jnp.nan) if test is None else test(model).value,
        gradient_norm=jnp.linalg.norm(slope),
        time=solution.ts[1][-1],
        steps=solution.stats["num_steps"],
        time_to_reach=_passes(times, heights, fraction * loss + (1 - fraction) * loss_start),
    )


def _not_resolved(code: Array, loss: Array, steep: Array, zero: Array) -> Array:
    """Whether weights are so large that the flow crawls, or that rounding hides what it ends at.

    Next to huge weights W any gradient is slow, though the loss changes by ‖∂L/∂W‖‖W‖ (`steep`) when W changes by its own size.
    No loss is negative. Along cW^PV the loss is Ac² − Bc + L(0) with A ≥ 0, and B = 2A at a critical point: none lies above
    L(0).
    """
    wrong = (loss > (1 + _ROUNDING) * zero) | (steep > _STEEP * zero)
    return ((code == CONVERGED) & wrong) | (loss < -_ROUNDING * zero)


def _passes(times: Array, heights: Array, target: Array) -> Array:
    """When a falling curve first is at `target`: between two points it is the quintic with their first two derivatives.

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
