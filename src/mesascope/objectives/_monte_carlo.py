"""The sampling engine: any process, any law, any model, with a standard error."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import Estimate
from mesascope.specs import Component

from ._engine import Objective
from ._sample_losses import Task, cast, check_model_reads, sample_losses, task_length


class SampledObjective(Objective):
    """The mean loss of fixed samples, which every evaluation draws from the same key.

    Attributes:
        process: the process of sequences or prompts; its arrays are traced, all other parts are static.
        task: the weights of predictions.
        key: random key of the sample.
        samples: number of sequences or prompts.
        batch: number of them in memory at the same time.
        precision: floating-point type of tokens and weights in the evaluation.
    """

    process: Any
    task: Task = eqx.field(static=True)
    key: Array
    samples: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    def __call__(self, model: Any) -> Estimate:
        """Return the mean over the sample and its standard error (standard deviation/√samples); differentiable."""
        immutable = isinstance(model, eqx.Module) and _is_value(self.process)
        drawn = _compiled_losses(self, model) if immutable else self._losses(model)
        return Estimate(jnp.mean(drawn), jnp.std(drawn, ddof=1) / self.samples**0.5)

    def _losses(self, model: Any) -> Array:
        check_model_reads(model, self.process)  # here, so that it is done once per compilation
        chunks = -(-self.samples // self.batch)
        model = cast(model, self.precision)

        @jax.checkpoint
        def losses(chunk: Array) -> Array:
            key = jax.random.fold_in(self.key, chunk)
            sample = self.process.sample(key, task_length(self.task), self.batch)
            return sample_losses(model, cast(sample, self.precision), self.task)

        return jax.lax.map(losses, jnp.arange(chunks)).reshape(-1)[: self.samples]


_compiled_losses = eqx.filter_jit(SampledObjective._losses)


def _is_value(process: Any) -> bool:
    """Return whether all but the arrays of the process is immutable: compiled code depends on everything but arrays."""
    try:
        hash(eqx.filter(process, eqx.is_array, inverse=True))
    except TypeError:
        return False
    return isinstance(process, Component | eqx.Module)
