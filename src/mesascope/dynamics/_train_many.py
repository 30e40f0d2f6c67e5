"""Many training runs that differ in their seed only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack

import equinox as eqx
import jax
from jax import Array

from mesascope.core import Progress, cores, in_this_precision, integer_at_least, named_key
from mesascope.objectives import Task
from mesascope.specs import show

from ._train import check_run, run_training, train_together
from ._training import Training
from ._training_settings import TrainingKeywords, TrainingSettings, takes_settings

Model = TypeVar("Model", bound=eqx.Module)


@takes_settings
def train_many(
    make: Callable[[Array], Model],
    process: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    checkpoint: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, Progress], None] | None = None,
    **settings: Unpack[TrainingKeywords],
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
        workers: runs at the same time on a CPU ≥ 1; as many as there are cores by default.
        progress: called with (seed, `Progress`) at every record, from the thread of the run.
        **settings: fields of `TrainingSettings`.

    Returns:
        The runs in the order of the seeds.

    Raises:
        ValueError, TypeError, CheckpointError: as `train`; and for no seeds, the same seed twice, or an unknown setting.
    """
    _check_make(make)
    chosen = TrainingSettings.of(**settings)
    keys = {seed: named_key(seed, "model") for seed in _checked_seeds(seeds)}
    if workers is not None:
        workers = integer_at_least("workers", workers, 1)
    check_run(process, task, chosen)
    if jax.default_backend() != "cpu" and checkpoint is None:
        return train_together(
            [make(key) for key in keys.values()], process, task, list(keys), chosen, progress
        )
    stop = threading.Event()

    @in_this_precision
    def run(seed: int) -> Training[Model]:
        folder = None if checkpoint is None else Path(checkpoint) / f"seed-{seed}"
        report = None if progress is None else partial(progress, seed)
        return run_training(make(keys[seed]), process, task, chosen, seed, folder, report, stop.is_set)

    with ThreadPoolExecutor(workers or cores()) as pool:
        runs = [pool.submit(run, seed) for seed in keys]
        try:
            return [one.result() for one in runs]
        except KeyboardInterrupt:
            stop.set()
            return [one.result() for one in runs]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _check_make(make: Any) -> None:
    if not callable(make) or hasattr(make, "predictions"):
        raise TypeError(
            "make: must be a function from a random key to a model, such as lambda key: linear_transformer(5, 2, key=key), "
            f"got {show(make)}"
        )


def _checked_seeds(seeds: Any) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str | bytes):
        raise TypeError(f"seeds: must be a list of them, such as [0, 1, 2] or range(3), got {show(seeds)}")
    numbers = [integer_at_least("seeds", seed, 0) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError(f"seeds: must be distinct, at least one, got {numbers}")
    return numbers
