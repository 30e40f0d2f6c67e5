"""The mean of the outputs of the nearest examples."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import per_example
from ._checks import checked_integer
from ._examples import Context
from ._fitting import learner
from ._learner import Features, Learner


@learner(
    "nearest-neighbours",
    integer="neighbours",
    largest=128,
    family="averaging",
    flexibility=70,
    example={"neighbours": 2},
)
class NearestNeighbours(Learner):
    r"""The mean output of the $k$ examples with the smallest $|x_i - q|$, or of all examples if there are fewer.

    Of examples at the same distance, the earlier ones are taken.

    Args:
        neighbours: $k \ge 1$.

    Raises:
        TypeError, ValueError: `neighbours` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = Context

    neighbours: int | Array

    def __init__(self, neighbours: int):
        self.neighbours = checked_integer("neighbours", neighbours, 1)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        gap = features.x - features.query[..., None, :]
        distance = jnp.where(features.seen, (gap.real**2 + gap.imag**2).sum(-1), jnp.inf)
        # all are sorted for any k, so that a traced k is compiled once
        nearness, nearest = jax.lax.top_k(-distance, distance.shape[-1])
        outputs = jnp.take_along_axis(features.y, nearest[..., None], axis=-2)
        counts = jnp.isfinite(nearness) & (jnp.arange(distance.shape[-1]) < self.neighbours)
        total = jnp.where(counts[..., None], outputs, 0).sum(-2)
        return per_example(total, jnp.minimum(features.n, self.neighbours)[..., None])
