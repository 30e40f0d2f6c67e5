"""Gradient descent on the mean loss of the examples."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, real_number
from ._fitting import STEP_SIZE, learner
from ._spectrum import Ends, SpectralLearner


@learner(
    "gradient-descent",
    STEP_SIZE,
    integer="steps",
    largest=128,
    family="descent",
    flexibility=50,
    example={"step_size": 0.1, "steps": 20},
)
class GradientDescent(SpectralLearner):
    r"""$K$ steps of gradient descent from $W_0 = 0$.

    $$W_{k+1} = W_k + \eta (\bar C - W_k \bar S), \qquad f_{k+1} = f_k + \eta (1 - s f_k),$$

    so that $f_K(s) = (1 - (1 - \eta s)^K)/s$. One step is $\hat y = \frac\eta n \sum_i y_i x_i^* q$.

    Args:
        step_size: $\eta$, a number; it converges for $0 < \eta < 2/s_p$.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number, `steps` is not an integer ≥ 1.

    Source: vonoswald2023, Proposition 1; zheng2024, where $K = 1$, $n = t - 1$ and $\eta = ab$.
    """

    step_size: Array
    steps: int | Array

    def __init__(self, step_size: Any, steps: int = 1):
        self.step_size = real_number("step_size", step_size)
        self.steps = checked_integer("steps", steps, 1)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return (1 − (1 − ηs)^K)/s, by its recursion."""
        step_size = real_in_precision_of(values, self.step_size)
        return jax.lax.fori_loop(
            0, self.steps, lambda _, f: f + step_size * (1 - values * f), jnp.zeros_like(values)
        )
