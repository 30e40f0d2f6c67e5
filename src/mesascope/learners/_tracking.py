"""Conjugate gradients that go on, after every example, from where they were."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, positive_number
from ._conjugate_gradients import descended
from ._examples import Context
from ._fitting import PENALTY, learner
from ._learner import Features, Learner
from ._online import answers, no_weights, outer


@learner(
    "tracking-conjugate-gradients",
    PENALTY,
    integer="steps",
    largest=8,
    family="least-squares",
    flexibility=145,
    example={"penalty": 0.7, "steps": 1},
)
class TrackingConjugateGradients(Learner):
    r"""$K$ steps of conjugate gradients towards ridge regression after every example, from the last weights.

    With $S_i = \sum_{j \le i} x_j x_j^*$ and $C_i = \sum_{j \le i} y_j x_j^*$ the weights $W_i$ are those after $K$ steps from
    $W_{i-1}$ on $\mathrm{Re}\,\mathrm{tr}\,(\frac12 W (S_i + r I) W^* - C_i W^*)$, and $W_0 = 0$. If $K$ is at least the number
    of inputs, they are those of ridge regression.

    Args:
        penalty: $r > 0$.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number > 0, `steps` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = Context

    penalty: Array
    steps: int | Array

    def __init__(self, penalty: Any, steps: int):
        self.penalty = positive_number("penalty", penalty)
        self.steps = checked_integer("steps", steps, 1)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        penalty = real_in_precision_of(features.x, self.penalty)

        def step(state: tuple[Array, ...], x: Array, y: Array) -> tuple[Array, ...]:
            weights, cross, gram = state
            cross, gram = cross + outer(y, x), gram + outer(x, x)
            return descended(gram, cross, self.steps, weights), cross, gram

        weights = no_weights(features)
        identity = jnp.eye(weights.shape[-1], dtype=weights.dtype)
        gram = jnp.broadcast_to(penalty * identity, (*weights.shape[:-2], *identity.shape))
        return answers(features, step, (weights, weights, gram), lambda state: state[0])
