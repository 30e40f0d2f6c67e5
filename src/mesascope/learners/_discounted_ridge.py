"""Ridge regression in which earlier examples count less."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import fraction, positive_number
from ._examples import Context
from ._fitting import PENALTY, Scalar, learner
from ._learner import Features, Learner
from ._online import answers, no_weights, outer


@learner(
    "discounted-ridge",
    PENALTY,
    Scalar("forgetting", 0.5, 0.99, bounded=True),
    extends=("ridge", (("forgetting", 1.0),)),
    family="least-squares",
    flexibility=141,
    example={"penalty": 0.7, "forgetting": 0.9},
)
class DiscountedRidge(Learner):
    r"""Ridge regression that forgets examples, but not its penalty.

    The minimum of $\sum_{i \le n} \phi^{n-i} |y_i - W x_i|^2 + r \|W\|^2$, which a MesaNet with constant gates computes.
    Recursive least squares multiplies its penalty by $\phi^n$, too.

    Args:
        penalty: $r > 0$.
        forgetting: $\phi \in (0, 1]$; 1 is ridge regression.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number > 0, `forgetting` is not a number in (0, 1].

    Source: vonoswald2025, equation (5), for constant gates.
    """

    reads: ClassVar[type[Features]] = Context

    penalty: Array
    forgetting: Array

    def __init__(self, penalty: Any, forgetting: Any = 1.0):
        self.penalty = positive_number("penalty", penalty)
        self.forgetting = fraction("forgetting", forgetting)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        penalty, forgetting = (
            real_in_precision_of(features.x, one) for one in (self.penalty, self.forgetting)
        )

        def step(sums: tuple[Array, Array], x: Array, y: Array) -> tuple[Array, Array]:
            cross, gram = sums
            return forgetting * cross + outer(y, x), forgetting * gram + outer(x, x)

        cross = no_weights(features)
        identity = jnp.eye(cross.shape[-1], dtype=cross.dtype)
        gram = jnp.broadcast_to(0 * identity, (*cross.shape[:-2], *identity.shape))
        return answers(
            features, step, (cross, gram), lambda sums: solved(sums[0], sums[1] + penalty * identity)
        )


def solved(cross: Array, gram: Array) -> Array:
    """Return C G^{-1} for positive definite G by elimination: (…, m, p) and (…, p, p) → (…, m, p).

    Without pivots, which positive definite matrices do not need. (LAPACK on batches of small matrices is slow, and versions
    of it can stand still in two threads.)
    """
    size = gram.shape[-1]

    def eliminate(j: Any, rows: Array) -> Array:
        here = jnp.arange(size) == j
        pivot = jnp.sum(jnp.where(here[:, None], rows, 0), -2)
        pivot = pivot / jnp.sum(jnp.where(here, pivot[..., :size], 0), -1, keepdims=True)
        column = jnp.sum(jnp.where(here, rows[..., :size], 0), -1)
        reduced = rows - column[..., None] * pivot[..., None, :]
        return jnp.where(here[:, None], pivot[..., None, :], reduced)

    rows = jnp.concatenate([jnp.swapaxes(gram, -1, -2), jnp.swapaxes(cross, -1, -2)], -1)  # G^T W^T = C^T
    return jnp.swapaxes(jax.lax.fori_loop(0, size, eliminate, rows)[..., size:], -1, -2)
