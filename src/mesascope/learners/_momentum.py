"""Gradient descent with momentum: Polyak's heavy ball and Nesterov's acceleration."""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, real_number
from ._fitting import MOMENTUM, STEP_SIZE, learner
from ._spectrum import Ends, SpectralLearner


class _TwoTerms(SpectralLearner):
    """Two-term recursions with a step size and a momentum."""

    step_size: Array
    momentum: Array
    steps: int | Array

    def __init__(self, step_size: Any, momentum: Any, steps: int):
        self.step_size = real_number("step_size", step_size)
        self.momentum = real_number("momentum", momentum)
        self.steps = checked_integer("steps", steps, 1)

    @abc.abstractmethod
    def next_term(self, values: Array, before: Array, now: Array) -> Array:
        """Return f_{k+1} from f_{k−1} and f_k, at the eigenvalues s."""

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by its recursion."""

        def step(_: Any, pair: tuple[Array, Array]) -> tuple[Array, Array]:
            return pair[1], self.next_term(values, *pair)

        return jax.lax.fori_loop(0, self.steps, step, (jnp.zeros_like(values),) * 2)[1]


@learner(
    "momentum",
    STEP_SIZE,
    MOMENTUM,
    integer="steps",
    largest=48,
    extends=("gradient-descent", (("momentum", 0.0),)),
    family="descent",
    flexibility=160,
    example={"step_size": 0.1, "momentum": 0.5, "steps": 5},
)
class Momentum(_TwoTerms):
    r"""$K$ steps of gradient descent with heavy-ball momentum, from $W_0 = W_{-1} = 0$.

    $$W_{k+1} = W_k + \eta (\bar C - W_k \bar S) + \beta (W_k - W_{k-1})$$

    and the same for the filter: $f_{k+1} = f_k + \eta (1 - s f_k) + \beta (f_k - f_{k-1})$.

    Args:
        step_size: $\eta$, a number.
        momentum: $\beta$, a number; 0 is gradient descent.
        steps: $K \ge 1$; one step is gradient descent for any $\beta$.

    Raises:
        TypeError, ValueError: a number that is not finite, `steps` is not an integer ≥ 1.
    """

    def next_term(self, values: Array, before: Array, now: Array) -> Array:
        """Return f + η (1 − s f) + β (f − f₋), with f₋ the previous term."""
        step_size, momentum = (
            real_in_precision_of(values, self.step_size),
            real_in_precision_of(values, self.momentum),
        )
        return now + step_size * (1 - values * now) + momentum * (now - before)


@learner(
    "nesterov",
    STEP_SIZE,
    MOMENTUM,
    integer="steps",
    largest=48,
    extends=("gradient-descent", (("momentum", 0.0),)),
    family="descent",
    flexibility=170,
    example={"step_size": 0.1, "momentum": 0.5, "steps": 5},
)
class Nesterov(_TwoTerms):
    r"""$K$ steps of Nesterov's accelerated gradient descent with constant momentum, from $W_0 = W_{-1} = 0$.

    $$V_k = W_k + \beta (W_k - W_{k-1}), \qquad W_{k+1} = V_k + \eta (\bar C - V_k \bar S)$$

    and the same for the filter: the gradient is evaluated after the momentum step.

    Args:
        step_size: $\eta$, a number.
        momentum: $\beta$, a number; 0 is gradient descent.
        steps: $K \ge 1$; one step is gradient descent for any $\beta$.

    Raises:
        TypeError, ValueError: a number that is not finite, `steps` is not an integer ≥ 1.
    """

    def next_term(self, values: Array, before: Array, now: Array) -> Array:
        """Return v + η (1 − s v) with v = f + β (f − f₋), f₋ the previous term."""
        step_size, momentum = (
            real_in_precision_of(values, self.step_size),
            real_in_precision_of(values, self.momentum),
        )
        ahead = now + momentum * (now - before)
        return ahead + step_size * (1 - values * ahead)
