"""GD++: gradient descent that also improves the conditioning of the inputs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, real_number
from ._fitting import STEP_SIZE, Scalar, learner
from ._spectrum import Ends, SpectralLearner


@learner(
    "gradient-descent++",
    STEP_SIZE,
    Scalar("curvature", 1e-2, 1.0, power=-1),
    integer="steps",
    largest=48,
    extends=("gradient-descent", (("curvature", 0.0),)),
    family="descent",
    flexibility=180,
    example={"step_size": 0.1, "curvature": 0.05, "steps": 4},
)
class GradientDescentPlusPlus(SpectralLearner):
    r"""$K$ steps of GD++: a gradient step on the outputs together with a curvature correction of the inputs.

    With the current inputs, residuals, and $\bar S = \frac1n \sum_i x_i x_i^*$ of the current inputs, a step replaces

    $$x_j \leftarrow (I - \gamma \bar S) x_j, \qquad y_j \leftarrow y_j - \frac\eta n \sum_i y_i x_i^* x_j$$

    for the examples and for the query, whose output starts at 0 and ends at $-\hat y$; the right sides are evaluated
    before the step. In the eigenvectors of the initial $\bar S$ the inputs are scaled by $p_k(s)$,

    $$f_{k+1} = f_k + \eta p_k^2 (1 - s f_k), \qquad p_{k+1} = p_k (1 - \gamma s p_k^2), \qquad p_0 = 1.$$

    Args:
        step_size: $\eta$, a number.
        curvature: $\gamma$, a number; 0 is gradient descent.
        steps: $K \ge 1$; one step is gradient descent for any $\gamma$.

    Raises:
        TypeError, ValueError: a number that is not finite, `steps` is not an integer ≥ 1.

    Source: vonoswald2023, section on curvature correction.
    """

    step_size: Array
    curvature: Array
    steps: int | Array

    def __init__(self, step_size: Any, curvature: Any, steps: int):
        self.step_size = real_number("step_size", step_size)
        self.curvature = real_number("curvature", curvature)
        self.steps = checked_integer("steps", steps, 1)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by the recursion of f and p."""
        step_size, curvature = (
            real_in_precision_of(values, self.step_size),
            real_in_precision_of(values, self.curvature),
        )

        def step(_: Any, pair: tuple[Array, Array]) -> tuple[Array, Array]:
            f, scale = pair
            f = f + step_size * scale**2 * (1 - values * f)
            return f, scale * (1 - curvature * values * scale**2)

        start = jnp.zeros_like(values), jnp.ones_like(values)
        return jax.lax.fori_loop(0, self.steps, step, start)[0]
