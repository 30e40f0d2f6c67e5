"""Models at several steps of one training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import gcd
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jax import Array

from mesascope.dynamics import Optimizer, decade_steps, load_model, train_many
from mesascope.records import CheckpointError, checkpoint_files, checkpoint_name, read_checkpoint

from ._progress import checkpoint_every, current_work, warn_damaged
from ._runs import Model, Seeds, require_finished, seeds_of


class Trainings(Seeds):
    """How the models of a claim are trained, one per seed."""

    rate: float
    batch: int


def recorded_trainings(
    make: Callable[[Array], Model],
    process: Any,
    task: Any,
    recorded: Sequence[int],
    settings: Trainings,
    **optimizer: Any,
) -> dict[int, list[Model]]:
    """`recorded_models` with Adam, whose rate follows a cosine; `optimizer` are further settings of it.

    Raises:
        KeyboardInterrupt, UnsettledError: as `require_finished`.
    """
    adam, seeds = Optimizer("adam", settings.rate, "cosine", **optimizer), seeds_of(settings)
    rest: dict[str, Any] = {"optimizer": adam, "batch": settings.batch, "held_out": 2}
    return recorded_models(make, process, task, seeds, recorded, **rest)


def recorded_models(
    make: Callable[[Array], Model],
    process: Any,
    task: Any,
    seeds: list[int],
    recorded: Sequence[int],
    **settings: Any,
) -> dict[int, list[Model]]:
    """Number of steps → one model per seed after so many steps of one training, which ends with the last number.

    Args:
        make: as for `train_many`.
        process: as for `train_many`.
        task: as for `train_many`.
        seeds: as for `train_many`.
        recorded: increasing; there is a checkpoint at every multiple of their greatest common divisor.
        settings: as for `train_many`, without `steps` and checkpoints.

    Raises:
        KeyboardInterrupt, UnsettledError: as `require_finished`.
    """
    every = gcd(*recorded)
    kept = {"checkpoint_every": checkpoint_every(recorded[-1], every) if current_work().folder else every}
    return _recorded(make, process, task, seeds, recorded, kept, settings)


def models_per_decade(
    make: Callable[[Array], Model],
    process: Any,
    task: Any,
    seeds: list[int],
    steps: int,
    per_decade: int,
    **settings: Any,
) -> dict[int, list[Model]]:
    """As `recorded_models`, at the checkpoints of `checkpoints_per_decade` and at the end of a training of so many steps."""
    recorded = [*takewhile(lambda step: step < steps, decade_steps(per_decade)), steps]
    return _recorded(make, process, task, seeds, recorded, {"checkpoints_per_decade": per_decade}, settings)


def _recorded(
    make: Callable[[Array], Model],
    process: Any,
    task: Any,
    seeds: list[int],
    recorded: Sequence[int],
    kept: dict[str, Any],
    settings: dict[str, Any],
) -> dict[int, list[Model]]:
    work = current_work()
    with TemporaryDirectory() as temporary:
        folder = work.training(make, process, task, list(recorded), sorted(settings.items()), seeds=seeds)
        if folder is not None:
            _remove_damaged(folder)
        runs = train_many(
            make,
            process,
            task,
            seeds,
            steps=recorded[-1],
            checkpoint=folder or temporary,
            progress=work.report,
            **kept,
            **settings,
        )
        ends = [(require_finished(run).model, run.checkpoint or Path(temporary)) for run in runs]
        return {
            step: [load_model(last.with_name(checkpoint_name(step)), end) for end, last in ends]
            for step in recorded
        }


def _remove_damaged(folder: Path) -> None:
    """Remove damaged checkpoints and those after them, with a warning: the training goes on from the one before."""
    for run in folder.glob("seed-*"):
        files = list(checkpoint_files(run).values())
        for number, path in enumerate(files):
            try:
                read_checkpoint(path)
            except CheckpointError as error:
                warn_damaged(error, "the training goes on from the checkpoint before, or starts again")
                for later in files[number:]:
                    later.unlink(missing_ok=True)
                break
