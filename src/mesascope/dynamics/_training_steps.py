"""Optimizer steps on fresh samples, many in one compiled loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.objectives import Task, cast, sample_losses, task_length

from ._devices import number_of_devices, on_devices
from ._parameters import real_vector
from ._pieces import in_pieces


class TrainingState(eqx.Module):
    """The quantities that change from step to step.

    Attributes:
        vector: the weights as one real vector (n,), in float32 or float64.
        optimizer: state of the optimizer.
        average: exponential moving average of the weights (n,), or None.
    """

    vector: Array
    optimizer: Any
    average: Array | None


class TrainingSteps(eqx.Module):
    """The definition of a step; equal if its fields are equal, so that runs with equal settings share compiled code.

    Attributes:
        process: what is drawn; arrays in it are traced, all else in it is compared.
        task: which predictions count.
        optimizer: an optax transformation.
        batch: sequences or prompts per step.
        precision: type of weights and samples in the loss; the state keeps float32 under bfloat16.
        decay: of the moving average, or None.
        devices: among how many a batch may be divided.
    """

    process: Any
    task: Task = eqx.field(static=True)
    optimizer: Any = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    precision: str = eqx.field(static=True)
    decay: float | None = eqx.field(static=True)
    devices: int = eqx.field(static=True, default=1)

    def start(self, model: eqx.Module) -> TrainingState:
        """The state before the first step."""
        vector = jnp.asarray(real_vector(model)[0])
        return TrainingState(vector, self.optimizer.init(vector), None if self.decay is None else vector)

    def advance(
        self, model: eqx.Module, state: TrainingState, total: Array, key: Array, taken: Array, count: Array
    ) -> tuple[TrainingState, Array]:
        """The state after `count` more steps, and `total` plus the mean losses of their batches.

        Step number n draws its batch from `fold_in(key, n)`, and losses are added one by one to `total`: nothing depends
        on where a run was cut, down to the last bit.

        Args:
            model: gives the structure; its weights are not used.
            state: after `taken` steps.
            total: sum of earlier losses, of the type of the state.
            key: of this run.
            taken: steps taken before, an integer.
            count: steps to take, an integer.
        """
        rebuild = real_vector(model)[1]

        def step(i: Array, carry: tuple[TrainingState, Array]) -> tuple[TrainingState, Array]:
            before, added = carry
            drawn = self.process.sample(
                jax.random.fold_in(key, taken + i), task_length(self.task), self.batch
            )
            value, gradient = self._value_and_gradient(rebuild(before.vector), cast(drawn, self.precision))
            updates, inner = self.optimizer.update(gradient, before.optimizer, before.vector)
            vector = before.vector + updates
            average = self._average(before.average, vector, taken + i)
            return TrainingState(vector, inner, average), added + value

        state, total = jax.lax.fori_loop(0, count, step, (state, total))
        return state, total

    def _value_and_gradient(self, model: eqx.Module, sample: Any) -> tuple[Array, Array]:
        """Mean loss of a batch, and its gradient in the coordinates of `real_vector`."""
        weights, rest = eqx.partition(model, eqx.is_inexact_array)

        def loss(weights: Any, sample: Any) -> Array:
            return self._loss(eqx.combine(weights, rest), sample)

        devices = number_of_devices(loss, self.devices, weights, sample)
        value, gradient = on_devices(partial(in_pieces, loss), devices)(weights, sample)
        return value, _real_gradient(gradient)

    def _loss(self, model: eqx.Module, sample: Any) -> Array:
        losses = sample_losses(cast(model, self.precision), sample, self.task)
        return jnp.mean(losses.astype(jnp.promote_types(losses.dtype, jnp.float32)))

    def _average(self, average: Array | None, vector: Array, number: Array) -> Array | None:
        """M ← δ m + (1 − δ) θ with δ = min(decay, (n + 1)/(n + 10)): young averages forget the start."""
        if average is None or self.decay is None:
            return None
        young = (number + 1) / (number + 10)
        decay = jnp.minimum(self.decay, young).astype(vector.dtype)
        return decay * average + (1 - decay) * vector


advance = eqx.filter_jit(TrainingSteps.advance)
"""One run, compiled."""


@eqx.filter_jit
def advance_together(
    steps: TrainingSteps,
    model: eqx.Module,
    runs: list[tuple[TrainingState, Array, Array]],
    taken: Array,
    count: Array,
) -> list[tuple[TrainingState, Array]]:
    """Many runs in one call: state, total and key of each."""
    state, total, key = jax.tree.map(lambda *each: jnp.stack(each), *runs)
    one = partial(steps.advance, model, taken=taken, count=count)
    moved = jax.vmap(one)(state, total, key)
    return [jax.tree.map(lambda each, i=i: each[i], moved) for i in range(len(runs))]


def _real_gradient(gradient: Any) -> Array:
    """The direction of ascent as a real vector: `jax.grad` of a real loss in a complex weight is its conjugate."""
    return jnp.asarray(real_vector(jax.tree.map(jnp.conj, gradient))[0])
