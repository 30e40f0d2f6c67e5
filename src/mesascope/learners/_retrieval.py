"""The symbol that followed the last symbol when it occurred before."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import share
from ._examples import Context
from ._fitting import Scalar, learner
from ._learner import Features, Learner


@learner(
    "retrieval",
    Scalar("smoothing", 1e-3, 0.95, bounded=True),
    extends=("uniform", (("smoothing", 1.0),)),
    symbols=True,
    family="averaging",
    flexibility=102,
    example={"smoothing": 0.2},
)
class Retrieval(Learner):
    r"""The symbol that followed the last earlier occurrence of the last symbol, for symbols as one-hot vectors.

    $$\hat y = (1 - \epsilon)\, y_i + \frac{\epsilon}{m}, \qquad i = \max\{j \le n : x_j = q\},$$

    and $\hat y = 1/m$ where the last symbol $q$ has not occurred before. It is what an induction head does: it finds the last
    symbol in the context and copies what came next. Here $x_j = q$ stands for $\mathrm{Re}\, x_j^* q > 1/2$, which is the same
    for one-hot vectors.

    Args:
        smoothing: $\epsilon$, from 0 (it copies) to 1 (every symbol has probability $1/m$, as for `Uniform`).

    Raises:
        TypeError, ValueError: `smoothing` is not a number from 0 to 1.

    Source: olsson2022, induction heads.
    """

    reads: ClassVar[type[Features]] = Context

    smoothing: Array

    def __init__(self, smoothing: Any):
        self.smoothing = share("smoothing", smoothing)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        positions = jnp.arange(1, features.x.shape[-2] + 1)
        occurs = features.seen & (features.overlaps.real > 0.5)
        last = jnp.max(jnp.where(occurs, positions, 0), -1, keepdims=True, initial=0)
        copied = jnp.where((positions == last)[..., None], features.y, 0).sum(-2)
        smoothing = jnp.where(last > 0, real_in_precision_of(features.y, self.smoothing), 1)
        return (1 - smoothing) * copied + smoothing / features.y.shape[-1]
