"""Sines of random frequency and phase."""

import mesascope as ms
from mesascope.specs import Dim, Positive


@ms.kind("sinusoids", dim=2)
class Sinusoids(ms.SequenceProcess):
    """Sines of random frequency and phase in every coordinate.

    Args:
        dim: token dimension.
        fastest: the largest speed, in radians per token.
    """

    dim: Dim
    fastest: Positive = 3.0

    def sample(self, key, horizon, batch):
        import jax
        import jax.numpy as jnp

        speed_key, phase_key = jax.random.split(key)
        speeds = jax.random.uniform(speed_key, (batch, 1, self.dim), maxval=float(self.fastest))
        phases = jax.random.uniform(phase_key, (batch, 1, self.dim), maxval=2 * jnp.pi)
        return jnp.sin(speeds * jnp.arange(horizon)[:, None] + phases)
