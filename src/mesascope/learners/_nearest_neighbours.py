"""The mean of the outputs of the nearest examples."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least

from ._arithmetic import per_example
from ._examples import Context
from ._learner import Features, Learner


class NearestNeighbours(Learner):
    r"""The mean output of the $k$ examples with the least $|x_i - q|$; of all examples where there are fewer.

    Of examples at the same distance the earlier ones count.

    Args:
        neighbours: $k \ge 1$.

    Raises:
        TypeError, ValueError: `neighbours` is no integer ≥ 1.
    """

    name: ClassVar[str] = "nearest-neighbours"
    reads: ClassVar[type[Features]] = Context

    neighbours: int = eqx.field(static=True)

    def __init__(self, neighbours: int):
        self.neighbours = integer_at_least("neighbours", neighbours, 1)

    def respond(self, features: Context) -> Array:
        """The prediction, shape (…, m)."""
        gap = features.x - features.query[..., None, :]
        distance = jnp.where(features.seen, (gap.real**2 + gap.imag**2).sum(-1), jnp.inf)
        k = min(self.neighbours, distance.shape[-1])
        nearness, nearest = jax.lax.top_k(-distance, k)
        outputs = jnp.take_along_axis(features.y, nearest[..., None], axis=-2)
        total = jnp.where(jnp.isfinite(nearness)[..., None], outputs, 0).sum(-2)
        return per_example(total, jnp.minimum(features.n, k)[..., None])
