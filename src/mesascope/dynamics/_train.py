"""Training on freshly drawn sequences or prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp

from mesascope.core import Clock, Estimate, Progress, integer_at_least, named_key, require_x64, shows_progress
from mesascope.objectives import Task, check_model_reads, check_task

from ._devices import devices_to_share, on_one_device
from ._held_out import held_out_loss, in_precision
from ._memory import refuse_large_networks, refuse_large_samples
from ._number_range import refuse_numbers_out_of_range
from ._outcome import Outcome
from ._parameters import in_state_precision, real_vector, refuse_weights_not_finite
from ._run_folder import RunFolder, run_facts
from ._training import Training
from ._training_log import TrainingLog
from ._training_settings import TrainingKeywords, TrainingSettings, takes_settings
from ._training_steps import TrainingState, TrainingSteps, advance, advance_together

Model = TypeVar("Model", bound=eqx.Module)

_FIRST_STEPS = 16  # at once; more where they are quick
_SECONDS_AT_ONCE = 1.0


@shows_progress
@takes_settings
def train(
    model: Model,
    process: Any,
    task: Task,
    *,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[TrainingKeywords],
) -> Training[Model]:
    """Minimize the expected loss on new samples at every step.

    Step n draws its batch from a key that depends on `seed` and n alone. A run with the same settings in the same
    `checkpoint` folder continues where the last one ended, and ends with the same bits as an uninterrupted run on the same
    machine; more `steps` extend it, unless the learning rate follows a schedule that ends with the run.

    Batches are divided among all devices that JAX shows. It shows a CPU as one, and one cannot fill many cores with small
    models: `jax.config.update("jax_num_cpu_devices", 8)`, before anything is computed, makes eight of them. Another number of
    devices changes how sums are rounded.

    Args:
        model: the start: anything with `predictions`, such as `SequenceModel`, `PromptModel` or `LinearAttention`.
        process: what draws the sequences (for `NextToken`) or prompts (for `FewShot`).
        task: which predictions count.
        seed: of the training and held-out samples (independent streams).
        checkpoint: a folder for checkpoints, made before the first step if it is missing; None keeps none.
        progress: called with a `Progress` at every record; KeyboardInterrupt keeps what was computed.
        **settings: fields of `TrainingSettings`.

    Returns:
        Also when the loss is not finite, from the start or later, or the run is interrupted: `result` says so, and the
        model, like the last checkpoint, is that of the last stop (record, evaluation or checkpoint) before.

    Raises:
        ValueError, TypeError: for bad settings, shapes that do not fit, numbers that the precision cannot hold, weights that
            are not finite, and for weights or samples of more than 4 GiB.
        MomentError: the loss of linear attention on `DiagonalUnitary` is infinite for its law.
        CheckpointError: the folder holds a checkpoint of another run (names the field) or a torn one.
        InUseError: another run writes to the folder now.
        RecordError: the folder or a checkpoint cannot be written.
    """
    how = TrainingSettings.of(**settings)
    return run_training(model, process, task, how, seed, checkpoint, progress, devices=devices_to_share())


def run_training(
    model: Model,
    process: Any,
    task: Task,
    settings: TrainingSettings,
    seed: int,
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    devices: int = 1,
) -> Training[Model]:
    """`train` with its settings as one object; ends early if `stopped()` is true at a stop."""
    check_run(process, task, settings)
    report = None if progress is None else lambda seed, now: progress(now)
    return train_together([model], process, task, [seed], settings, report, checkpoint, stopped, devices)[0]


def train_together(
    models: list[Model],
    process: Any,
    task: Task,
    seeds: list[int],
    settings: TrainingSettings,
    progress: Callable[[int, Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    stopped: Callable[[], bool] = lambda: False,
    devices: int = 1,
) -> list[Training[Model]]:
    """Train several runs together, by one `vmap`; one that fails keeps its last state, the others continue.

    Only a single run keeps checkpoints, and divides its batches among devices.
    """
    check_model(models[0], process, settings, len(models))
    starts = [checked_start(model, settings.precision) for model in models]
    seeds = [integer_at_least("seed", seed, 0) for seed in seeds]
    how = (process, task, settings.transformation(), settings.batch, settings.precision, settings.decay)
    with in_precision(settings.precision):
        steps = TrainingSteps(*how, devices)
        runs = [_Run(start, seed, settings, steps) for start, seed in zip(starts, seeds, strict=True)]
        if checkpoint is None:
            return _Loop(runs).run(progress, stopped)
        (run,) = runs
        folder = RunFolder(Path(checkpoint), run.model, run_facts(process, task, settings, run.seed))
        with folder.locked():
            run.resume(folder)
            return _Loop(runs).run(progress, stopped)


def check_run(process: Any, task: Task, settings: TrainingSettings) -> None:
    """Refuse what cannot be trained, before anything is compiled."""
    check_task(process, task)
    if settings.precision == "float64":
        require_x64("train(precision='float64')")
    refuse_numbers_out_of_range(settings.precision, process=process, task=task, optimizer=settings.optimizer)
    refuse_large_samples(process, task, settings.batch, settings.precision)


def check_model(model: Any, process: Any, settings: TrainingSettings, runs: int = 1) -> None:
    """Refuse models that do not fit the process, or that are too large to be trained together."""
    check_model_reads(model, process)
    refuse_large_networks(model, settings, runs)


def checked_start(model: Model, precision: str) -> Model:
    """The model in the precision of the run; weights that this cannot hold are refused."""
    refuse_weights_not_finite(model)
    refuse_numbers_out_of_range(precision, model=model)
    with in_precision(precision):
        return in_state_precision(model, precision)


class _Run(Generic[Model]):
    """One training run: its state, and what is done at a stop."""

    def __init__(self, model: Model, seed: int, settings: TrainingSettings, steps: TrainingSteps):
        self.model, self.seed, self.settings, self.steps = model, seed, settings, steps
        self.key = named_key(seed, "train")
        self.state, self.taken, self.log = steps.start(model), 0, TrainingLog()
        self.failure: Outcome | None = None
        self.evaluated: tuple[int, Estimate] | None = None
        self.folder: RunFolder | None = None
        self.checkpoint: Path | None = None
        self._replaceable: Path | None = None  # the last checkpoint, if it was saved by time
        self._saved_at = monotonic()

    @property
    def goes_on(self) -> bool:
        """Whether there are steps left to take."""
        return self.failure is None and self.taken < self.settings.steps

    @property
    def save_is_due(self) -> bool:
        """Whether the last checkpoint is older than it may be."""
        return (
            self.folder is not None and monotonic() - self._saved_at >= 60 * self.settings.checkpoint_minutes
        )

    @property
    def total(self) -> Any:
        """The sum of the losses since the last record."""
        return jnp.asarray(self.log.pending, self.state.vector.dtype)

    def resume(self, folder: RunFolder) -> None:
        """Continue from the last checkpoint in a folder, and write the next ones there."""
        self.folder = folder
        self.taken, self.state, self.log = folder.resume(self.state, self.settings.steps)
        self.checkpoint = folder.file(self.taken) if self.taken else None
        if self.taken == 0 and self.settings.keeps(0):
            self._save()
        if self.settings.is_due(self.settings.record_every, self.taken):
            self.log.record(self.taken)  # if the run was interrupted at a stop, before its record

    def move(self, stop: int, moved: TrainingState, total: Any) -> bool:
        """Go to a stop, evaluation there included: an interruption undoes all of it or none of it; False if not finite."""
        if not bool(jnp.isfinite(moved.vector).all() & jnp.isfinite(total)):
            return False
        due = self.settings.is_due(self.settings.evaluate_every, stop)
        if due or stop == self.settings.steps:
            loss = self._evaluate(stop, moved)
            if not bool(jnp.isfinite(loss.value)):  # finite weights with a loss that is not
                return False
        if due:
            self.log.evaluate(stop, float(loss.value), float(loss.standard_error))
        self.log.add(float(total), stop - self.taken)
        self.state, self.taken = moved, stop
        return True

    def record(self) -> bool:
        """Record and save what is due at this stop; whether the loss was recorded."""
        if self.settings.is_due(self.settings.record_every, self.taken):
            self.log.record(self.taken)
        if self.settings.keeps(self.taken):
            self._save()
        if self.save_is_due:
            self._save()
            self._replaceable = self.checkpoint
        if self.taken == self.settings.steps:
            self._close()
        return bool(self.log.steps) and self.log.steps[-1] == self.taken

    def _evaluate(self, taken: int, state: TrainingState) -> Estimate:
        """The held-out loss of these weights, computed once for every number of steps."""
        if self.evaluated is None or self.evaluated[0] != taken:
            process, task = self.steps.process, self.steps.task
            loss = held_out_loss(self._model(state.vector), process, task, self.settings, self.seed)
            self.evaluated = taken, loss
        return self.evaluated[1]

    def _save(self) -> None:
        if self.folder is not None and self.checkpoint != self.folder.file(self.taken):
            self.checkpoint = self.folder.save(self.taken, self.state, self.log)
            self._saved_at = monotonic()
            if self._replaceable is not None:
                self._replaceable.unlink(missing_ok=True)
                self._replaceable = None

    def _close(self) -> None:
        """Save, then close the last record: it stays open in the checkpoint, as in a run that continues."""
        self._save()
        self.log.record(self.taken)

    def _model(self, vector: Any) -> Model:
        return real_vector(self.model)[1](vector)

    def finished(self) -> Training[Model]:
        """The result of the run."""
        self._close()
        average = self.state.average
        return Training(
            self._model(self.state.vector),
            None if average is None else self._model(average),
            *self.log.arrays(),
            self._evaluate(self.taken, self.state),
            self.failure or (Outcome.INTERRUPTED if self.goes_on else Outcome.FINISHED),
            self.checkpoint,
            self.steps.task,
        )


class _Loop(Generic[Model]):
    """The loop over the stops, of one run or many."""

    def __init__(self, runs: list[_Run[Model]]):
        self._runs, self._settings, self._steps = runs, runs[0].settings, runs[0].steps
        self._at_once = _FIRST_STEPS

    def run(
        self, progress: Callable[[int, Progress], None] | None, stopped: Callable[[], bool]
    ) -> list[Training[Model]]:
        """Take the remaining steps."""
        with suppress(KeyboardInterrupt):
            for run, now in self._records(stopped):
                if progress is not None:
                    progress(run.seed, now)
        return [run.finished() for run in self._runs]

    def _records(self, stopped: Callable[[], bool]) -> Iterator[tuple[_Run[Model], Progress]]:
        settings, clock = self._settings, Clock()
        while (going := [run for run in self._runs if run.goes_on]) and not stopped():
            self._advance(going[0].taken, stopped)
            for run in going:
                if not run.failure and run.record():
                    yield run, clock.read(run.taken, settings.steps, values={"loss": run.log.losses[-1]})

    def _advance(self, taken: int, stopped: Callable[[], bool]) -> None:
        """Take the steps to the next stop, or until a checkpoint is due or the runs are stopped."""
        start = [(run.state, run.total) for run in self._runs]
        here, last = (taken, start), self._settings.next_stop(taken)
        try:
            while here[0] < last and (here[0] == taken or not (self._runs[0].save_is_due or stopped())):
                count = min(last - here[0], self._at_once)
                here = (here[0] + count, self._moved(here[1], here[0], count))
        except KeyboardInterrupt:
            if here[0] > taken:
                self._move(*here)
            raise
        failed = self._move(*here)
        # the loss of the first batch shows whether the steps are the cause
        first = self._moved(start, 0, 1) if failed and taken == 0 else None
        for i in failed:
            begins = first is None or bool(jnp.isfinite(first[i][1]))
            self._runs[i].failure = Outcome.DIVERGED if begins else Outcome.NOT_FINITE

    def _move(self, stop: int, moved: list[tuple[TrainingState, Any]]) -> list[int]:
        """Let the runs go to a stop; the indices of those that are not finite there, and stay."""
        return [i for i, run in enumerate(self._runs) if run.goes_on and not run.move(stop, *moved[i])]

    def _moved(
        self, states: list[tuple[TrainingState, Any]], taken: int, count: int
    ) -> list[tuple[TrainingState, Any]]:
        """The state of every run after `count` more steps, and the sum of its losses since the last record.

        Compiled steps cannot be interrupted: the number of steps that are taken at once follows from the time of this call.
        """
        began, runs, numbers = monotonic(), self._runs, (jnp.asarray(taken), jnp.asarray(count))
        if len(runs) > 1:
            each = [(*state, run.key) for state, run in zip(states, runs, strict=True)]
            moved = advance_together(self._steps, runs[0].model, each, *numbers)
        else:
            one = advance(self._steps, runs[0].model, *states[0], runs[0].key, *numbers)
            moved = [on_one_device(one) if self._steps.devices > 1 else one]
        jax.block_until_ready(moved)
        seconds = monotonic() - began
        if seconds > _SECONDS_AT_ONCE:
            self._at_once = max(1, self._at_once // 2)
        elif seconds < _SECONDS_AT_ONCE / 2:
            self._at_once = max(self._at_once, 2 * count)
        return moved
