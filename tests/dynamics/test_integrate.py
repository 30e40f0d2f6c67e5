"""The loop of all flows takes the steps of `diffrax.diffeqsolve`, and ends where it says."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mesascope.dynamics import Rodas4
from mesascope.dynamics._integrate import AT_TIME, RUNNING, STEADY, Bounds, integrate
from mesascope.dynamics._steady_state import steepness

START = jnp.asarray([1.5, -0.7, 0.3])
ROWS = 2000


class Weights(eqx.Module):
    """One matrix."""

    values: Array


def gradient(y):
    """Of a loss with a flat and a steep direction: steps of very different size, some of them rejected."""
    return jnp.stack([y[0] ** 3 + y[1] * y[2], 40 * y[1] + y[0] * y[2], y[2] + y[0] * y[1]])


def followed(solver, end=3.0, steady=-1.0, max_steps=ROWS):
    bounds = Bounds(0.0, jnp.asarray(end), 0.5, steady, 1e-8, 1e-10)
    slope = gradient(START)
    steep = steepness(Weights, slope, START)
    record = lambda time, point, slope: (time, point, slope)  # noqa: E731
    flow = eqx.filter_jit(integrate)(
        gradient, Weights, START, slope, steep, bounds, solver, max_steps, record, ROWS
    )
    return flow, [np.asarray(one)[: int(flow.accepted)] for one in flow.records]


@pytest.mark.slow
@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Dopri8(), diffrax.Kvaerno5(), Rodas4()])
def test_the_steps_are_those_of_diffeqsolve(solver):
    flow, (times, points, slopes) = followed(solver)
    other = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -gradient(y)),
        solver,
        0.0,
        3.0,
        0.5,
        START,
        saveat=diffrax.SaveAt(steps=True),
        stepsize_controller=diffrax.PIDController(1e-8, 1e-10),
        max_steps=ROWS,
    )
    assert flow.code == AT_TIME and flow.time == times[-1] == 3.0
    assert flow.accepted == other.stats["num_accepted_steps"]
    assert 0 < flow.rejected == other.stats["num_rejected_steps"]
    # the same arithmetic in two programs, which may round differently; steps follow from errors near 1e-8
    np.testing.assert_allclose(times, other.ts[: len(times)], rtol=1e-6)
    np.testing.assert_allclose(points, other.ys[: len(points)], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        slopes, np.stack([gradient(point) for point in points]), rtol=1e-12, atol=1e-14
    )


@pytest.mark.slow
def test_it_ends_with_the_first_step_to_a_steady_state():
    flow, (_, points, slopes) = followed(diffrax.Tsit5(), end=np.inf, steady=1e-2)
    steep = [float(steepness(Weights, *map(jnp.asarray, one))[0]) for one in zip(slopes, points, strict=True)]
    assert flow.code == STEADY and len(steep) > 10
    assert steep[-1] <= 1e-2 < min(steep[:-1])
    np.testing.assert_array_equal(flow.point, points[-1])


def test_a_start_in_a_steady_state_takes_no_step():
    flow, _ = followed(diffrax.Tsit5(), steady=1e9)
    assert flow.code == STEADY and flow.accepted == flow.rejected == flow.time == 0
    np.testing.assert_array_equal(flow.slope, gradient(START))


def test_steps_can_run_out():
    flow, (times, _, _) = followed(diffrax.Tsit5(), max_steps=7)
    assert flow.code == RUNNING and flow.accepted + flow.rejected == 7 and flow.time == times[-1] < 3
