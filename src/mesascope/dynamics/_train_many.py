"""Many training runs that differ in their seed only."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.objectives import Task

from ._outcome import Outcome
from ._parameters import in_state_precision, real_vector
from ._progress import ProgressCallback
from ._train import Training, check_run, held_out_loss, in_precision, run_training
from ._training_log import TrainingLog
from ._training_settings import TrainingSettings
from ._training_steps import TrainingSteps, advance_together

Model = TypeVar("Model", bound=eqx.Module)


def train_many(
    make: Callable[[Array], Model],
    process: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    checkpoint: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, Any], None] | None = None,
    **settings: Any,
) -> list[Training[Model]]:
    """Train one model per seed.

    The run of a seed is `train(make(key), …, seed=seed)` with `key = named_key(seed, "model")`: alone or among others, it ends
    with the same weights up to rounding. On a CPU the runs share the cores as threads, since one small model cannot fill
    them; this was faster than processes (which compile again) and than `vmap`. On an accelerator they are one `vmap`.

    Args:
        make: builds the start from a random key, such as `lambda key: linear_transformer(5, 2, key=key)`.
        process: as for `train`.
        task: as for `train`.
        seeds: distinct seeds.
        checkpoint: a folder that gets one subfolder `seed-…` per run; runs there continue as those of `train` do.
        workers: runs at the same time on a CPU; as many as there are cores by default.
        progress: called with (seed, `TrainingProgress`) at every record, from the thread of the run.
        settings: as for `train`: optimizer, steps, batch, precision, ….

    Returns:
        The runs in the order of the seeds.

    Raises:
        ValueError, TypeError, CheckpointError: as `train`; and for no seeds, or the same seed twice.
    """
    chosen = _checked_settings(settings)
    numbers = [int(seed) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError(f"seeds: must be distinct, at least one, got {list(seeds)}")
    check_run(process, task, chosen)

    def model(seed: int) -> Model:
        return make(named_key(seed, "model"))

    if jax.default_backend() != "cpu" and checkpoint is None:
        return train_together([model(seed) for seed in numbers], process, task, numbers, chosen)
    stop = threading.Event()

    def run(seed: int) -> Training[Model]:
        folder = None if checkpoint is None else Path(checkpoint) / f"seed-{seed}"
        report = None if progress is None else _for_seed(progress, seed)
        return run_training(model(seed), process, task, chosen, seed, folder, report, stop.is_set)

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        runs = [pool.submit(run, seed) for seed in numbers]
        try:
            return [one.result() for one in runs]
        except KeyboardInterrupt:
            stop.set()
            return [one.result() for one in runs]
        except BaseException:
            stop.set()
            raise


def train_together(
    models: list[Model], process: Any, task: Task, seeds: list[int], settings: TrainingSettings
) -> list[Training[Model]]:
    """All runs as one `vmap`; a run whose loss stops being finite stays where it was, the others go on."""
    with in_precision(settings.precision):
        starts = [in_state_precision(model, settings.precision) for model in models]
        steps = TrainingSteps(
            process, task, settings.transformation(), settings.batch, settings.precision, settings.average
        )
        states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[steps.start(model) for model in starts])
        keys = jnp.stack([named_key(seed, "train") for seed in seeds])
        logs = [TrainingLog() for _ in seeds]
        lasting = np.ones(len(seeds), bool)
        taken, result = 0, Outcome.FINISHED
        try:
            while taken < settings.steps and lasting.any():
                stop = min(settings.steps, taken + settings.record_every)
                moved, means = advance_together(
                    steps, starts[0], states, keys, jnp.asarray(taken), jnp.asarray(stop - taken)
                )
                lasting &= np.asarray(jnp.isfinite(moved.vector).all(1) & jnp.isfinite(means))
                states = _where(lasting, moved, states)
                for log, mean in [(logs[i], means[i]) for i in np.flatnonzero(lasting)]:
                    log.add(float(mean), stop - taken)
                    log.record(stop)
                taken = stop
        except KeyboardInterrupt:
            result = Outcome.INTERRUPTED
        found = []
        for i, seed in enumerate(seeds):
            rebuild = real_vector(starts[i])[1]
            model = rebuild(states.vector[i])
            average = None if states.average is None else rebuild(states.average[i])
            loss = held_out_loss(model, process, task, settings, seed)
            ended = result if lasting[i] else Outcome.DIVERGED
            found.append(Training(model, average, *logs[i].arrays(), loss, ended, None))
        return found


def _where(chosen: np.ndarray, new: Any, old: Any) -> Any:
    def one(a: Array, b: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(one, new, old)


def _for_seed(progress: Callable[[int, Any], None], seed: int) -> ProgressCallback:
    return lambda now: progress(seed, now)


def _checked_settings(settings: dict[str, Any]) -> TrainingSettings:
    known = [field.name for field in fields(TrainingSettings)]
    for name in settings:
        if name not in known:
            raise TypeError(f"train_many: {name!r} is no setting; use one of {', '.join(known)}")
    return TrainingSettings(**{name: value for name, value in settings.items() if value is not None})
