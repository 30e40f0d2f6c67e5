"""A model that continues sequences by a fixed recursion."""

import equinox as eqx
import jax
import jax.numpy as jnp

from mesascope.models import model
from mesascope.specs import Positive


class TwoTerms(eqx.Module):
    """x̂_{t+1} = α x_t + β x_{t−1}.

    Attributes:
        weights: (α, β).
    """

    weights: jax.Array

    def predictions(self, tokens):
        before = jnp.pad(tokens, [(0, 0)] * (tokens.ndim - 2) + [(1, 0), (0, 0)])[..., :-1, :]
        return (self.weights[0] * tokens + self.weights[1] * before)[..., 1:, :]

    def __call__(self, tokens):
        return self.predictions(tokens)[..., -1, :]


@model("two-terms", reads=["real tokens"])
def two_terms(scale: Positive = 0.1, *, key):
    """Return the model with independent N(0, s²) weights.

    Args:
        scale: s > 0.
        key: random key.
    """
    return TwoTerms(float(scale) * jax.random.normal(key, (2,)))
