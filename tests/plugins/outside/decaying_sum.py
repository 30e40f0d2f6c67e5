"""A layer that sums previous tokens with decaying weights."""

import jax
import jax.numpy as jnp

from mesascope.models import Layer, layer
from mesascope.specs import Positive


@layer("decaying-sum")
class DecayingSum(Layer):
    """z_t ↦ W Σ_i e^{−λ(t−i)} z_i over the tokens i ≤ t.

    Attributes:
        weights: W, shape (width, width).
        rate: λ, a number.
    """

    weights: jax.Array
    rate: jax.Array

    @classmethod
    def gaussian(cls, width, rate: Positive = 0.5, *, key):
        """Return a layer with independent N(0, 1/width) entries.

        Args:
            width: entries of a token.
            rate: λ > 0 at the start.
            key: random key.
        """
        return cls(jax.random.normal(key, (width, width)) * width**-0.5, jnp.asarray(rate))

    @property
    def width(self):
        return self.weights.shape[-1]

    output_width = width

    @property
    def causal(self):
        return True

    def __call__(self, stream):
        ages = jnp.arange(stream.shape[-2])[:, None] - jnp.arange(stream.shape[-2])
        kernel = jnp.where(ages >= 0, jnp.exp(-self.rate * jnp.maximum(ages, 0)), 0)
        return kernel @ stream @ self.weights.T
