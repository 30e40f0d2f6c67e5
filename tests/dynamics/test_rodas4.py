"""The stiff solver: its order, and that stiffness costs no steps."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.dynamics import Rodas4

START = jnp.asarray([2.0, 0.5])


def van_der_pol(t, y, args):
    return jnp.stack([y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]])


def after(solver, steps, until=3.0):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(van_der_pol), solver, 0.0, until, until / steps, START, max_steps=steps + 1
    )
    return np.asarray(solution.ys[-1])


def test_a_step_is_that_of_the_flow_and_hands_its_last_slope_on():
    """y' = −y² from 1 is 1/(1 + t)."""
    term, solver, start = diffrax.ODETerm(lambda t, y, args: -(y**2)), Rodas4(), jnp.ones(1)
    state = solver.init(term, 0.0, 0.1, start, None)
    end, error, _, (missing, slope), _ = solver.step(term, 0.0, 0.1, start, None, state, made_jump=False)
    # of order h⁵ and h⁴: 6e-8 and 5e-6 here; a wrong sign of a stage gives 0.1
    assert abs(float(end[0]) - 1 / 1.1) < 1e-6 and abs(float(error[0])) < 1e-4
    assert not missing and float(slope[0]) == pytest.approx(-(float(end[0]) ** 2), rel=1e-15)


@pytest.mark.slow
def test_the_error_falls_with_the_fourth_power_of_the_step():
    exact = diffrax.diffeqsolve(
        diffrax.ODETerm(van_der_pol),
        diffrax.Dopri8(),
        0.0,
        3.0,
        None,
        START,
        stepsize_controller=diffrax.PIDController(1e-13, 1e-13),
    ).ys[-1]
    errors = [np.linalg.norm(after(Rodas4(), steps) - exact) for steps in (160, 320, 640)]
    slopes = np.diff(np.log2(errors))
    # they near −4 from −4.4, through −4.28 and −4.17; a coefficient with a wrong digit gives −3 at best
    assert slopes == pytest.approx(-4.0, abs=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [1e3, 1e9])
def test_a_fast_component_dies_in_steps_that_follow_the_slow_one(stiffness):
    def field(t, y, args):
        return jnp.stack([-y[0], -stiffness * (y[1] - y[0] ** 2)])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        Rodas4(),
        0.0,
        3.0,
        1e-3,
        jnp.asarray([1.0, 0.0]),
        stepsize_controller=diffrax.PIDController(1e-6, 1e-9),
        max_steps=500,
    )
    assert int(solution.stats["num_steps"]) < 400  # an explicit method needs more than 3 · stiffness / 3.3
    end, slow = np.asarray(solution.ys[-1]), np.exp(-3.0)
    # y₁ = y₀² · stiffness/(stiffness − 2) once its start is forgotten
    assert end == pytest.approx([slow, slow**2 * stiffness / (stiffness - 2)], rel=1e-4)
