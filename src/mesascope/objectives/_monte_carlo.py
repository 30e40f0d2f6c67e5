"""The sampling engine: any process, any law, any model, with a standard error."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import Estimate, integer_at_least, named_key
from mesascope.models import Normalizer
from mesascope.processes import NextToken

from ._engine import Engine, Objective
from ._sequence_loss import sequence_losses


class SampledObjective(Objective):
    """The mean loss of fixed sampled sequences, drawn anew inside every evaluation from the same key.

    Attributes:
        process: anything with `sample(key, horizon, batch)`.
        weights: w_2 … w_{T−1}.
        key: random key of the sample.
        samples: number of sequences; batch: how many are held at once.
    """

    process: Any = eqx.field(static=True)
    weights: Array
    key: Array
    samples: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def __call__(self, model: eqx.Module) -> Estimate:
        """Mean over the sample and its standard error (standard deviation/√samples); differentiable."""
        horizon = self.weights.shape[0] + 2
        chunks = -(-self.samples // self.batch)

        @jax.checkpoint
        def losses(chunk: Array) -> Array:
            key = jax.random.fold_in(self.key, chunk)
            tokens = self.process.sample(key, horizon, self.batch)
            return sequence_losses(model, tokens, self.weights)

        drawn = jax.lax.map(losses, jnp.arange(chunks)).reshape(-1)[: self.samples]
        return Estimate(jnp.mean(drawn), jnp.std(drawn, ddof=1) / jnp.sqrt(self.samples))


class MonteCarlo(Engine):
    """Expectations as means over sampled sequences.

    Treats every process with a sampler and every model with `predictions`. The same seed gives the same sequences, so
    that differences between models are not drowned in noise (common random numbers).

    Attributes:
        samples: number of sequences, at least 2.
        seed: seed of the sample.
        batch: sequences held in memory at once.
    """

    samples: int = eqx.field(static=True, default=10_000)
    seed: int = eqx.field(static=True, default=0)
    batch: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        integer_at_least("samples", self.samples, 2)
        integer_at_least("seed", self.seed, 0)
        integer_at_least("batch", self.batch, 1)

    def objective(self, process: Any, task: NextToken, normalizer: Normalizer = "t-1") -> SampledObjective:
        """The sampled objective; the normalizer is the model's own."""
        if not hasattr(process, "sample"):
            raise TypeError(f"MonteCarlo needs a process with a sampler, and {type(process).__name__} has none")
        weights = jnp.asarray(task.weights_array(), float)
        key = named_key(self.seed, "monte-carlo")
        return SampledObjective(process, weights, key, self.samples, min(self.batch, self.samples))
