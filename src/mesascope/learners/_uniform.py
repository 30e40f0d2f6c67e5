"""The same probability for every symbol."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from ._examples import Context
from ._fitting import learner
from ._learner import Features, Learner


@learner("uniform", symbols=True, family="fixed", flexibility=12)
class Uniform(Learner):
    r"""The same probability $\hat y_b = 1/m$ for each of the $m$ symbols, independently of the examples.

    Source: edelman2024, the first phase of training on Markov chains.
    """

    reads: ClassVar[type[Features]] = Context

    def respond(self, features: Context) -> Array:
        """Return 1/m, shape (…, m)."""
        symbols = features.y.shape[-1]
        return jnp.full((*features.n.shape, symbols), 1 / symbols, features.y.dtype)
