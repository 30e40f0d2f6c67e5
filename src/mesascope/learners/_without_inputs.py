"""Learners that ignore inputs: zero, the last output, the mean of the outputs."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from ._arithmetic import per_example
from ._examples import Context
from ._fitting import learner
from ._learner import Features, Learner


@learner("zero", flexibility=10)
class Zero(Learner):
    """Predicts 0, independently of the examples."""

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return zeros, shape (…, m)."""
        return jnp.zeros((*features.n.shape, features.y.shape[-1]), features.y.dtype)


@learner("last-token", flexibility=20)
class LastToken(Learner):
    r"""Predicts the last output $y_n$; in a sequence this is the last token, $\hat x_{t+1} = x_t$ for $t \ge 2$."""

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return y_n, shape (…, m)."""
        last = jnp.arange(features.x.shape[-2]) == features.n[..., None] - 1
        return _sum(last, features.y)


@learner("average", flexibility=30)
class Average(Learner):
    r"""Predicts the mean output $\frac1n \sum_i y_i$; in a sequence this is the mean of the tokens $x_2 \dots x_t$."""

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return the mean of the outputs seen, shape (…, m)."""
        return per_example(_sum(features.seen, features.y), features.n[..., None])


def _sum(chosen: Array, y: Array) -> Array:
    """Return the sum of the chosen outputs."""
    return jnp.where(chosen[..., None], y, 0).sum(-2)
