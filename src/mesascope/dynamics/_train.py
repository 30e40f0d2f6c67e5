"""Training on freshly sampled sequences with any optax optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, integer_at_least, named_key
from mesascope.objectives import refuse_large_batches, sequence_losses
from mesascope.processes import NextToken

from ._outcome import Outcome
from ._parameters import real_vector

if TYPE_CHECKING:  # a third of a second to import: only training pays for it
    import optax

Model = TypeVar("Model", bound=eqx.Module)


class Training(eqx.Module, Generic[Model]):
    """A finished training run.

    Attributes:
        model: the model after the last step whose weights were finite.
        steps: number of steps taken at every record, shape (n,).
        losses: mean loss of the batches since the record before, shape (n,).
        loss: loss on held-out sequences at the end, with its standard error.
        result: how it ended; `result.message` names the remedy where one is needed.
    """

    model: Model
    steps: np.ndarray
    losses: np.ndarray
    loss: Estimate
    result: Outcome


def train(
    model: Model,
    process: Any,
    task: NextToken,
    *,
    optimizer: optax.GradientTransformation | None = None,
    steps: int = 1000,
    batch: int = 256,
    seed: int = 0,
    held_out: int = 4096,
    record_every: int = 50,
    progress: Callable[[int, float], None] | None = None,
) -> Training[Model]:
    """Minimize the loss on sequences drawn afresh at every step.

    Args:
        model: the start; its floating-point type decides the precision.
        process: anything with `sample(key, horizon, batch)`.
        task: horizon and weights of the context lengths.
        optimizer: any optax optimizer; `optax.adam(1e-3)` by default.
        steps: number of steps ≥ 1.
        batch: sequences per step ≥ 1.
        seed: of the training and held-out sequences (independent streams).
        held_out: sequences for the loss at the end, at least 2.
        record_every: steps between records ≥ 1.
        progress: called with (steps taken, mean loss) at every record; KeyboardInterrupt keeps what was computed.

    Raises:
        ValueError, TypeError: for bad settings, or shapes that do not fit.
    """
    for name, value, least in (
        ("steps", steps, 1),
        ("batch", batch, 1),
        ("held_out", held_out, 2),
        ("record_every", record_every, 1),
    ):
        integer_at_least(name, value, least)
    if not isinstance(task, NextToken):
        raise TypeError(f"task: must be a task such as NextToken(horizon=100), got {task!r}")
    if not hasattr(process, "sample"):
        raise TypeError(f"process: must have a sampler, such as DiagonalUnitary(law, dim), got {process!r}")
    if optimizer is not None and not hasattr(optimizer, "init"):
        raise TypeError(f"optimizer: must be an optax optimizer such as optax.adam(1e-3), got {optimizer!r}")
    refuse_large_batches(process, task, batch)
    chosen = _adam() if optimizer is None else optimizer
    key = named_key(seed, "train")
    weights = jnp.asarray(task.weights_array(), float)
    vector, rebuild = real_vector(model)
    state = chosen.init(vector)
    run = eqx.filter_jit(_Steps(process, chosen, batch))
    taken, records, losses, result = 0, [], [], Outcome.FINISHED
    try:
        while taken < steps:
            count = min(record_every, steps - taken)
            moved, moved_state, mean = run(
                model, vector, state, weights, key, jnp.asarray(taken), jnp.asarray(count)
            )
            if not bool(jnp.isfinite(moved).all() & jnp.isfinite(mean)):
                result = Outcome.DIVERGED
                break
            vector, state, taken = moved, moved_state, taken + count
            records.append(taken)
            losses.append(float(mean))
            if progress is not None:
                progress(taken, losses[-1])
    except KeyboardInterrupt:
        result = Outcome.INTERRUPTED
    trained = rebuild(vector)
    held = _held_out_loss(trained, process, weights, named_key(seed, "held-out"), held_out, batch)
    return Training(trained, np.array(records, int), np.array(losses), held, result)


def _adam() -> optax.GradientTransformation:
    import optax

    return optax.adam(1e-3)


class _Steps(eqx.Module):
    """Several optimizer steps in one compiled loop."""

    process: Any = eqx.field(static=True)
    optimizer: Any = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def __call__(
        self,
        model: eqx.Module,
        vector: Array,
        state: Any,
        weights: Array,
        key: Array,
        taken: Array,
        count: Array,
    ) -> tuple[Array, Any, Array]:
        _, rebuild = real_vector(model)

        def loss(values: Array, number: Array) -> Array:
            tokens = sample_like(
                values, self.process, jax.random.fold_in(key, number), len(weights) + 2, self.batch
            )
            return jnp.mean(sequence_losses(rebuild(values), tokens, weights))

        def step(i: Array, carry: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
            values, inner, total = carry
            value, gradient = jax.value_and_grad(loss)(values, taken + i)
            updates, inner = self.optimizer.update(gradient, inner, values)
            return values + updates, inner, total + value

        start = (vector, state, jnp.zeros((), vector.dtype))
        moved, inner, total = jax.lax.fori_loop(0, count, step, start)
        return moved, inner, total / count


def sample_like(values: Array, process: Any, key: Array, horizon: int, batch: int) -> Array:
    """Sequences in the precision of the weights."""
    tokens = process.sample(key, horizon, batch)
    complex_type = jnp.result_type(values.dtype, jnp.complex64)
    return tokens.astype(complex_type if jnp.iscomplexobj(tokens) else values.dtype)


def _held_out_loss(
    model: Any, process: Any, weights: Array, key: Array, samples: int, batch: int
) -> Estimate:
    vector, _ = real_vector(model)
    evaluate = eqx.filter_jit(
        lambda model, key: sequence_losses(
            model, sample_like(vector, process, key, len(weights) + 2, batch), weights
        )
    )
    drawn = [evaluate(model, jax.random.fold_in(key, i)) for i in range(-(-samples // batch))]
    values = jnp.concatenate(drawn)[:samples]
    return Estimate(jnp.mean(values), jnp.std(values, ddof=1) / samples**0.5)
