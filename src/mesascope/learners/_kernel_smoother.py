"""The mean of the outputs, weighted by the similarity of the inputs to the query."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, real_in_precision_of
from ._checks import real_number
from ._examples import Context
from ._fitting import Scalar, learner
from ._learner import Features, Learner


@learner(
    "kernel-smoother",
    Scalar("sharpness", 1e-2, 1e2, power=-1),
    extends=("average", (("sharpness", 0.0),)),
    family="averaging",
    flexibility=100,
    example={"sharpness": 0.4},
)
class KernelSmoother(Learner):
    r"""The mean of the outputs with softmax weights, as in one head of softmax attention over the examples.

    $$\hat y = \sum_i a_i y_i, \qquad a_i \propto \exp(\beta\, \mathrm{Re}\, x_i^* q), \qquad \sum_i a_i = 1.$$

    For inputs of equal norm the weights are those of a Gaussian kernel of width $h$, $\beta = 1/h^2$. With $\beta = 0$
    it is the average; for large $\beta$ it is the output of the example with the largest overlap.

    Args:
        sharpness: $\beta$, a number.

    Raises:
        TypeError, ValueError: `sharpness` is not a finite number.
    """

    reads: ClassVar[type[Features]] = Context

    sharpness: Array

    def __init__(self, sharpness: Any):
        self.sharpness = real_number("sharpness", sharpness)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        overlaps, seen = features.overlaps.real, features.seen
        logits = jnp.where(seen, real_in_precision_of(overlaps, self.sharpness) * overlaps, 0)
        highest = jnp.max(jnp.where(seen, logits, -jnp.inf), -1, keepdims=True, initial=-jnp.inf)
        highest = jax.lax.stop_gradient(jnp.where(jnp.isfinite(highest), highest, 0))
        weights = jnp.where(seen, jnp.exp(jnp.where(seen, logits - highest, 0)), 0)
        total = weights.sum(-1, keepdims=True)
        weights = weights / jnp.where(total > 0, total, 1)
        return einsum("...n,...nm->...m", weights.astype(features.y.dtype), features.y)
