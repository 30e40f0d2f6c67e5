"""Gradient descent towards ridge regression: descent with weight decay."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import per_example, real_in_precision_of
from ._checks import checked_integer, nonnegative_number, real_number
from ._fitting import PENALTY, STEP_SIZE, learner
from ._spectrum import Ends, SpectralLearner


@learner(
    "ridge-gradient-descent",
    STEP_SIZE,
    PENALTY,
    integer="steps",
    largest=48,
    extends=("gradient-descent", (("penalty", 0.0),)),
    family="descent",
    flexibility=175,
    example={"step_size": 0.1, "penalty": 0.7, "steps": 5},
)
class RidgeGradientDescent(SpectralLearner):
    r"""$K$ steps of gradient descent on the loss of ridge regression, from $W_0 = 0$.

    The loss is $\frac1{2n} \left( \sum_i |y_i - W x_i|^2 + r \|W\|^2 \right)$:

    $$W_{k+1} = W_k + \eta \left( \bar C - W_k \left( \bar S + \tfrac rn I \right) \right), \qquad
    f_{k+1} = f_k + \eta \left( 1 - \left( s + \tfrac rn \right) f_k \right).$$

    Args:
        step_size: $\eta$, a number.
        penalty: $r \ge 0$; 0 is gradient descent.
        steps: $K \ge 1$; one step is gradient descent for any $r$.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number, `penalty` not one ≥ 0, `steps` is not an integer ≥ 1.
    """

    step_size: Array
    penalty: Array
    steps: int | Array

    def __init__(self, step_size: Any, penalty: Any, steps: int):
        self.step_size = real_number("step_size", step_size)
        self.penalty = nonnegative_number("penalty", penalty)
        self.steps = checked_integer("steps", steps, 1)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by its recursion."""
        step_size, penalty = (real_in_precision_of(values, one) for one in (self.step_size, self.penalty))
        shifted = values + per_example(penalty, n)
        return jax.lax.fori_loop(
            0, self.steps, lambda _, f: f + step_size * (1 - shifted * f), jnp.zeros_like(values)
        )
