"""A learner that predicts a multiple of the last output."""

from typing import Any

import jax.numpy as jnp

from mesascope.learners import Context, Learner, Scalar, learner


@learner("last-times", Scalar("factor", 0.1, 10.0), example={"factor": 0.5})
class LastTimes(Learner):
    """Predicts c times the last output.

    Args:
        factor: c > 0.
    """

    reads = Context
    factor: Any

    def respond(self, features):
        last = jnp.arange(features.x.shape[-2]) == features.n[..., None] - 1
        return self.factor * jnp.where(last[..., None], features.y, 0).sum(-2)
