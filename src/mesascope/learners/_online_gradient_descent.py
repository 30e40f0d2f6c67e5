"""Gradient descent with one step per example."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, real_in_precision_of
from ._checks import real_number
from ._examples import Context
from ._fitting import STEP_SIZE, learner
from ._learner import Features, Learner


@learner("online-gradient-descent", STEP_SIZE, family="descent", flexibility=90, example={"step_size": 0.05})
class OnlineGradientDescent(Learner):
    r"""One gradient step per example, in order, on the loss of that example; from $W_0 = 0$.

    $$W_i = W_{i-1} + \eta\, e_i x_i^*, \qquad e_i = y_i - W_{i-1} x_i,$$

    so that $\hat y = \eta \sum_{i \le n} e_i x_i^* q$ (least mean squares). The step size is not divided by $n$.

    Args:
        step_size: $\eta$, a number; stable for $\eta |x_i|^2 < 2$.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number.
    """

    reads: ClassVar[type[Features]] = Context

    step_size: Array

    def __init__(self, step_size: Any):
        self.step_size = real_number("step_size", step_size)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        x, y = jnp.moveaxis(features.x, -2, 0), jnp.moveaxis(features.y, -2, 0)
        step_size = real_in_precision_of(x, self.step_size)

        def step(weights: Array, example: tuple[Array, Array]) -> tuple[Array, Array]:
            x, y = example
            error = step_size * (y - einsum("...mp,...p->...m", weights, x))
            return weights + error[..., None] * x.conj()[..., None, :], error

        start = jnp.zeros((*y.shape[1:], x.shape[-1]), x.dtype)
        errors = jnp.moveaxis(jax.lax.scan(step, start, (x, y))[1], 0, -2)
        return einsum("...n,...nm->...m", jnp.where(features.seen, features.overlaps, 0), errors)
