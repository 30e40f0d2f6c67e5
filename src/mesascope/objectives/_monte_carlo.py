"""The sampling engine: any process, any law, any model, with a standard error."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import Estimate, integer_at_least, named_key, require_x64
from mesascope.models import LinearAttentionModel, Normalizer
from mesascope.processes import DiagonalUnitary, NextToken

from ._engine import Engine, Objective, require_moments
from ._sequence_loss import sequence_losses

_LARGEST_BATCH = 2**32


class SampledObjective(Objective):
    """The mean loss of fixed sampled sequences, drawn anew inside every evaluation from the same key.

    Attributes:
        process: anything with `sample(key, horizon, batch)`.
        weights: w_2 … w_{T−1}.
        key: random key of the sample.
        samples: number of sequences; batch: how many are held at once.
        precision: floating-point type of tokens and weights in the evaluation.
    """

    process: Any = eqx.field(static=True)
    weights: Array
    key: Array
    samples: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    def __call__(self, model: Any) -> Estimate:
        """Mean over the sample and its standard error (standard deviation/√samples); differentiable."""
        if isinstance(model, LinearAttentionModel) and isinstance(self.process, DiagonalUnitary):
            # a finite sample has a mean whatever the law; it would look like an answer
            require_moments(self.process.law, self.process.dim)
        lasting = isinstance(model, eqx.Module) and _is_value(self.process)
        drawn = _compiled_losses(self, model) if lasting else self._losses(model)
        return Estimate(jnp.mean(drawn), jnp.std(drawn, ddof=1) / self.samples**0.5)

    def _losses(self, model: Any) -> Array:
        horizon = self.weights.shape[0] + 2
        chunks = -(-self.samples // self.batch)
        model = jax.tree.map(self._cast, model)

        @jax.checkpoint
        def losses(chunk: Array) -> Array:
            key = jax.random.fold_in(self.key, chunk)
            tokens = self._cast(self.process.sample(key, horizon, self.batch))
            return sequence_losses(model, tokens, self.weights)

        return jax.lax.map(losses, jnp.arange(chunks)).reshape(-1)[: self.samples]

    def _cast(self, array: Any) -> Any:
        if not eqx.is_inexact_array(array):
            return array
        real = jnp.dtype(self.precision)
        return array.astype(jnp.result_type(real, jnp.complex64) if jnp.iscomplexobj(array) else real)


_compiled_losses = eqx.filter_jit(SampledObjective._losses)


def refuse_large_batches(process: Any, task: NextToken, batch: int) -> None:
    """Refuse batches whose tokens would take more than 4 GiB.

    Raises:
        ValueError: says how large they would be.
    """
    size = 16 * batch * task.horizon * int(getattr(process, "dim", 1))
    if size > _LARGEST_BATCH:
        raise ValueError(
            f"{batch} sequences of horizon {task.horizon} take {size / 2**30:.3g} GiB at once; "
            "take a smaller batch or horizon, or ExactMoments, whose cost does not grow with the horizon"
        )


def _is_value(process: Any) -> bool:
    """Whether the process is all in its hash: compiled code of one that can change would become stale."""
    try:
        hash(process)
    except TypeError:
        return False
    return isinstance(process, eqx.Module)


class MonteCarlo(Engine):
    """Expectations as means over sampled sequences.

    The standard error is itself estimated from moments of order 12: with fewer (Student-t laws with df ≤ 12) it comes out
    too small.

    Treats every process with a sampler and every model with `predictions`. The same seed gives the same
    sequences, so that differences between models are not drowned in noise (common random numbers).

    Attributes:
        samples: number of sequences, at least 2.
        seed: seed of the sample.
        batch: sequences held in memory at once.
        precision: "float32" or "float64"; by default JAX's own default float type.
    """

    samples: int = eqx.field(static=True, default=10_000)
    seed: int = eqx.field(static=True, default=0)
    batch: int = eqx.field(static=True, default=500)
    precision: str | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        integer_at_least("samples", self.samples, 2)
        integer_at_least("seed", self.seed, 0)
        integer_at_least("batch", self.batch, 1)
        if self.precision not in (None, "float32", "float64"):
            raise ValueError(f"precision: must be 'float32' or 'float64', got {self.precision!r}")
        if self.precision == "float64":
            require_x64("MonteCarlo(precision='float64')")

    def objective(self, process: Any, task: NextToken, normalizer: Normalizer = "t-1") -> SampledObjective:
        """The sampled objective; the normalizer is the model's own."""
        if not hasattr(process, "sample"):
            raise TypeError(
                f"MonteCarlo needs a process with a sampler, and {type(process).__name__} has none"
            )
        refuse_large_batches(process, task, min(self.batch, self.samples))
        weights = jnp.asarray(task.weights_array(), float)
        key = named_key(self.seed, "monte-carlo")
        precision = self.precision or jnp.zeros(()).dtype.name
        return SampledObjective(process, weights, key, self.samples, min(self.batch, self.samples), precision)
