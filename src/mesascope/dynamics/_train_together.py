"""Many training runs as one `vmap`, for accelerators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.objectives import Task

from ._held_out import held_out_loss, in_precision
from ._outcome import Outcome
from ._parameters import real_vector
from ._progress import Clock, TrainingProgress
from ._train import Training, check_model, checked_start
from ._training_log import TrainingLog
from ._training_settings import TrainingSettings
from ._training_steps import TrainingState, TrainingSteps, advance_together

Model = TypeVar("Model", bound=eqx.Module)


def train_together(
    models: list[Model],
    process: Any,
    task: Task,
    seeds: list[int],
    settings: TrainingSettings,
    progress: Callable[[int, TrainingProgress], None] | None = None,
) -> list[Training[Model]]:
    """All runs in one call; a run whose loss stops being finite stays where it was, the others go on."""
    check_model(models[0], process, settings, len(models))
    starts = [checked_start(model, settings.precision) for model in models]
    with in_precision(settings.precision):
        return _Runs(starts, process, task, seeds, settings).run(progress)


class _Runs(Generic[Model]):
    """Runs in step with each other; without checkpoints."""

    def __init__(
        self, models: list[Model], process: Any, task: Task, seeds: list[int], settings: TrainingSettings
    ):
        self.models, self.process, self.task = models, process, task
        self.seeds, self.settings = seeds, settings
        self.steps = TrainingSteps(
            process, task, settings.transformation(), settings.batch, settings.precision, settings.average
        )
        self.keys = jnp.stack([named_key(seed, "train") for seed in seeds])
        starts = [self.steps.start(model) for model in models]
        self.states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
        self.logs = [TrainingLog() for _ in seeds]
        self.lasting = np.ones(len(seeds), bool)
        self.failures = dict.fromkeys(range(len(seeds)), Outcome.DIVERGED)
        self.reached = np.zeros(len(seeds), int)
        self.taken = 0

    def run(self, progress: Callable[[int, TrainingProgress], None] | None) -> list[Training[Model]]:
        """Take all steps."""
        with suppress(KeyboardInterrupt):
            for i, now in self._records():
                if progress is not None:
                    progress(self.seeds[i], now)
        return [self._finished(i) for i in range(len(self.seeds))]

    def _records(self) -> Iterator[tuple[int, TrainingProgress]]:
        """Advance from stop to stop; at every record each lasting run and its progress."""
        settings, clock = self.settings, Clock()
        while self.taken < settings.steps and self.lasting.any():
            self._advance()
            lasting = [int(i) for i in np.flatnonzero(self.lasting)]
            if settings.is_due(settings.evaluate_every, self.taken):
                for i in lasting:
                    loss = self._evaluate(i)
                    self.logs[i].evaluate(self.taken, float(loss.value), float(loss.standard_error))
            if settings.is_due(settings.record_every, self.taken) or self.taken == settings.steps:
                for i in lasting:
                    self.logs[i].record(self.taken)
                    yield i, clock.read(self.taken, settings.steps, self.logs[i].losses[-1])

    def _advance(self) -> None:
        stop = self.settings.next_stop(self.taken)
        moved, totals = self._moved(stop - self.taken)
        self.lasting &= np.asarray(jnp.isfinite(moved.vector).all(1) & jnp.isfinite(totals))
        if self.taken == 0 and not self.lasting.all():
            self._tell_starts()
        self.states = _where(self.lasting, moved, self.states)
        sums = np.asarray(totals)
        for i in np.flatnonzero(self.lasting):
            self.logs[i].add(float(sums[i]), stop - self.taken)
        self.taken, self.reached[self.lasting] = stop, stop

    def _moved(self, count: int) -> tuple[TrainingState, Array]:
        """The states after so many more steps, and the sums of the losses since the last record."""
        totals = jnp.asarray([log.pending for log in self.logs], self.states.vector.dtype)
        taken = jnp.asarray(self.taken)
        return advance_together(
            self.steps, self.models[0], self.states, totals, self.keys, taken, jnp.asarray(count)
        )

    def _tell_starts(self) -> None:
        """Note which runs had no finite loss to begin with."""
        for i in np.flatnonzero(~np.isfinite(np.asarray(self._moved(1)[1]))):
            self.failures[int(i)] = Outcome.NOT_FINITE

    def _evaluate(self, i: int) -> Any:
        model = self._model(i, self.states.vector)
        return held_out_loss(model, self.process, self.task, self.settings, self.seeds[i])

    def _model(self, i: int, vectors: Array) -> Model:
        return real_vector(self.models[i])[1](vectors[i])

    def _finished(self, i: int) -> Training[Model]:
        self.logs[i].record(int(self.reached[i]))
        averages, loss = self.states.average, self._evaluate(i)
        return Training(
            self._model(i, self.states.vector),
            None if averages is None else self._model(i, averages),
            *self.logs[i].arrays(),
            loss,
            self._result(i, bool(jnp.isfinite(loss.value))),
            None,
        )

    def _result(self, i: int, finite: bool) -> Outcome:
        if not self.lasting[i]:
            return self.failures[i]
        if not finite:
            return Outcome.DIVERGED
        return Outcome.FINISHED if self.taken == self.settings.steps else Outcome.INTERRUPTED


def _where(chosen: np.ndarray, new: Any, old: Any) -> Any:
    def one(a: Array, b: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(one, new, old)
