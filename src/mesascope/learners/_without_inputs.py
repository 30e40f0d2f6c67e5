"""Learners that ignore inputs: zero, a constant, the last output, the mean of the outputs."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from mesascope.core import finite_array

from ._arithmetic import in_precision_of, per_example
from ._examples import Context
from ._fitting import learner
from ._learner import Features, Learner


@learner("zero", family="fixed", flexibility=10)
class Zero(Learner):
    """Predicts 0, independently of the examples."""

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return zeros, shape (…, m)."""
        return jnp.zeros((*features.n.shape, features.y.shape[-1]), features.y.dtype)


@learner("constant", family="fixed", flexibility=15, example={"value": (0.4, -0.7)})
class Constant(Learner):
    """Predicts the same vector, independently of the examples.

    Args:
        value: the vector, shape (m,), or one number for all entries; real or complex.

    Raises:
        TypeError, ValueError: it is not finite or has more than one axis; in predictions, a length that is not m.
    """

    reads: ClassVar[type[Features]] = Context

    value: Array

    def __init__(self, value: Any):
        self.value = finite_array("value", value)
        if self.value.ndim > 1:
            raise ValueError(f"value must be a number or a vector, got shape {self.value.shape}")

    def respond(self, features: Context) -> Array:
        """Return the vector, shape (…, m)."""
        outputs = features.y.shape[-1]
        if self.value.shape not in ((), (outputs,)):
            raise ValueError(f"value of shape {self.value.shape} does not fit outputs of {outputs} entries")
        value = in_precision_of(features.y, self.value)
        return jnp.zeros((*features.n.shape, outputs), features.y.dtype) + value


@learner("last-token", family="fixed", flexibility=20)
class LastToken(Learner):
    r"""Predicts the last output $y_n$; in a sequence this is the last token, $\hat x_{t+1} = x_t$ for $t \ge 2$."""

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return y_n, shape (…, m)."""
        last = jnp.arange(features.x.shape[-2]) == features.n[..., None] - 1
        return _sum(last, features.y)


@learner("average", family="averaging", flexibility=30)
class Average(Learner):
    r"""Predicts the mean output $\frac1n \sum_i y_i$; in a sequence this is the mean of the tokens $x_2 \dots x_t$.

    What Garg et al. (2022) call averaging, $\frac1n \sum_i y_i x_i^\top q$, is one step of `GradientDescent` of size 1.
    """

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return the mean of the outputs seen, shape (…, m)."""
        return per_example(_sum(features.seen, features.y), features.n[..., None])


def _sum(chosen: Array, y: Array) -> Array:
    """Return the sum of the chosen outputs."""
    return jnp.where(chosen[..., None], y, 0).sum(-2)
