"""Training on freshly drawn sequences or prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mesascope.core import Estimate, integer_at_least, named_key, require_x64
from mesascope.objectives import Task, check_model_reads, check_task

from ._devices import devices_to_share, on_one_device
from ._held_out import held_out_loss, in_precision
from ._memory import refuse_large_networks, refuse_large_samples
from ._number_range import refuse_numbers_out_of_range
from ._optimizer import Optimizer
from ._outcome import Outcome
from ._parameters import in_state_precision, real_vector, refuse_weights_not_finite
from ._progress import Clock, ProgressCallback, TrainingProgress
from ._run_folder import RunFolder, run_facts
from ._training_log import TrainingLog
from ._training_settings import TrainingSettings
from ._training_steps import TrainingState, TrainingSteps, advance

if TYPE_CHECKING:
    import optax

Model = TypeVar("Model", bound=eqx.Module)


class Training(eqx.Module, Generic[Model]):
    """A finished training run.

    Attributes:
        model: the model at the last stop at which weights and losses were finite.
        average: the model with the moving average of the weights, if one was asked for.
        steps: number of steps taken at every record, shape (n,).
        losses: mean loss of the batches since the record before, shape (n,).
        evaluated: number of steps taken at every evaluation, shape (m,).
        evaluations: loss on the held-out samples there, shape (m,), with standard errors.
        loss: loss of `model` on the held-out samples at the end, with its standard error.
        result: how it ended; `result.message` names the remedy where one is needed.
        checkpoint: the last checkpoint, if a folder for them was given.
    """

    model: Model
    average: Model | None
    steps: np.ndarray
    losses: np.ndarray
    evaluated: np.ndarray
    evaluations: Estimate
    loss: Estimate
    result: Outcome
    checkpoint: Path | None = eqx.field(static=True)


def train(
    model: Model,
    process: Any,
    task: Task,
    *,
    optimizer: Optimizer | optax.GradientTransformation | None = None,
    steps: int = 1000,
    batch: int = 256,
    seed: int = 0,
    precision: str = "float32",
    average: float | None = None,
    held_out: int = 4096,
    record_every: int = 50,
    evaluate_every: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    progress: ProgressCallback | None = None,
) -> Training[Model]:
    """Minimize the expected loss on samples drawn afresh at every step.

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
        optimizer: `Optimizer(…)`, or any optax transformation on one real vector of weights (complex weights
            are their real and imaginary parts); Adam at 1e-3 by default.
        steps: number of steps ≥ 1.
        batch: samples per step ≥ 1.
        seed: of the training and held-out samples (independent streams).
        precision: "float32", "float64" (needs 64-bit mode), or "bfloat16" for samples and activations with
            weights in float32.
        average: decay of an exponential moving average of the weights, such as 0.999; None keeps none.
        held_out: samples for evaluations, at least 2; the same ones at every evaluation.
        record_every: steps between records of the loss ≥ 1; a last record closes the run.
        evaluate_every: steps between evaluations; None evaluates only at the end.
        checkpoint: a folder for checkpoints, made before the first step if it is missing; None keeps none.
        checkpoint_every: steps between checkpoints; None saves only at the end.
        progress: called with a `TrainingProgress` at every record; KeyboardInterrupt keeps what was computed.

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
    settings = TrainingSettings(
        Optimizer() if optimizer is None else optimizer,
        steps,
        batch,
        precision,
        average,
        held_out,
        record_every,
        evaluate_every,
        checkpoint_every,
    )
    return run_training(
        model, process, task, settings, seed, checkpoint, progress, devices=devices_to_share()
    )


def run_training(
    model: Model,
    process: Any,
    task: Task,
    settings: TrainingSettings,
    seed: int,
    checkpoint: str | Path | None = None,
    progress: ProgressCallback | None = None,
    stopped: Callable[[], bool] = lambda: False,
    devices: int = 1,
) -> Training[Model]:
    """`train` with its settings as one value, on so many devices; ends early when `stopped()` at a stop."""
    check_run(process, task, settings)
    check_model(model, process, settings)
    start = checked_start(model, settings.precision)
    seed = integer_at_least("seed", seed, 0)
    with in_precision(settings.precision):
        return _Run(start, process, task, settings, seed, checkpoint, devices).run(progress, stopped)


def check_run(process: Any, task: Task, settings: TrainingSettings) -> None:
    """Refuse what cannot be trained, before anything is compiled."""
    check_task(process, task)
    if settings.precision == "float64":
        require_x64("train(precision='float64')")
    refuse_numbers_out_of_range(settings.precision, process=process, task=task, optimizer=settings.optimizer)
    refuse_large_samples(process, task, settings.batch, settings.precision)


def check_model(model: Any, process: Any, settings: TrainingSettings, runs: int = 1) -> None:
    """Refuse models that do not fit the process, or of which so many cannot be trained at once."""
    check_model_reads(model, process)
    refuse_large_networks(model, settings, runs)


def checked_start(model: Model, precision: str) -> Model:
    """The model in the precision of the run; weights that this cannot hold are refused."""
    refuse_weights_not_finite(model)
    refuse_numbers_out_of_range(precision, model=model)
    with in_precision(precision):
        return in_state_precision(model, precision)


class _Run(Generic[Model]):
    """One training run: steps from stop to stop, and what is done there."""

    def __init__(
        self,
        model: Model,
        process: Any,
        task: Task,
        settings: TrainingSettings,
        seed: int,
        checkpoint: Any,
        devices: int,
    ):
        self.model, self.process, self.task, self.settings, self.seed = model, process, task, settings, seed
        self.key = named_key(seed, "train")
        self.steps = TrainingSteps(
            process,
            task,
            settings.transformation(),
            settings.batch,
            settings.precision,
            settings.average,
            devices,
        )
        self.state, self.taken, self.log = self.steps.start(model), 0, TrainingLog()
        self.failure: Outcome | None = None
        self.evaluated: tuple[int, Estimate] | None = None
        self.folder: RunFolder | None = None
        self.checkpoint: Path | None = None
        if checkpoint is not None:
            self.folder = RunFolder(Path(checkpoint), model, run_facts(process, task, settings, seed))

    def run(self, progress: ProgressCallback | None, stopped: Callable[[], bool]) -> Training[Model]:
        """Take the steps that are left."""
        with nullcontext() if self.folder is None else self.folder.held():
            self._resume()
            with suppress(KeyboardInterrupt):
                for now in self._records(stopped):
                    if progress is not None:
                        progress(now)
            return self._finished()

    def _resume(self) -> None:
        if self.folder is not None:
            self.taken, self.state, self.log = self.folder.resume(self.state, self.settings.steps)
            self.checkpoint = self.folder.file(self.taken) if self.taken else None

    def _records(self, stopped: Callable[[], bool]) -> Iterator[TrainingProgress]:
        """Advance from stop to stop, until the end or until something is not finite."""
        settings, clock = self.settings, Clock()
        while self.taken < settings.steps and not stopped():
            self._advance()
            if self.failure:
                return
            if settings.is_due(settings.record_every, self.taken):
                self.log.record(self.taken)
            if settings.is_due(settings.checkpoint_every, self.taken):
                self._save()
            if self.taken == settings.steps:
                self._close()
            if self.log.steps and self.log.steps[-1] == self.taken:
                yield clock.read(self.taken, settings.steps, self.log.losses[-1])

    def _advance(self) -> None:
        """Go to the next stop, evaluation there included: an interruption undoes all of it or nothing."""
        settings, stop = self.settings, self.settings.next_stop(self.taken)
        moved, total = self._moved(stop - self.taken)
        if not bool(jnp.isfinite(moved.vector).all() & jnp.isfinite(total)):
            self.failure = self._reason()
            return
        due = settings.is_due(settings.evaluate_every, stop)
        if due or stop == settings.steps:
            loss = self._evaluate(stop, moved)
            if not bool(jnp.isfinite(loss.value)):  # finite weights of which nothing good can be said
                self.failure = self._reason()
                return
        if due:
            self.log.evaluate(stop, float(loss.value), float(loss.standard_error))
        self.log.add(float(total), stop - self.taken)
        self.state, self.taken = moved, stop

    def _moved(self, count: int) -> tuple[TrainingState, Any]:
        """The state after so many more steps, and the sum of the losses since the last record."""
        total = jnp.asarray(self.log.pending, self.state.vector.dtype)
        taken = jnp.asarray(self.taken)
        moved = advance(self.steps, self.model, self.state, total, self.key, taken, jnp.asarray(count))
        return on_one_device(moved) if self.steps.devices > 1 else moved

    def _reason(self) -> Outcome:
        """Why the steps from here did not stay finite: the first batch's loss tells whether steps are to blame at all."""
        if self.taken == 0 and not bool(jnp.isfinite(self._moved(1)[1])):
            return Outcome.NOT_FINITE
        return Outcome.DIVERGED

    def _evaluate(self, taken: int, state: TrainingState) -> Estimate:
        """The held-out loss of these weights, computed once for every number of steps."""
        if self.evaluated is None or self.evaluated[0] != taken:
            model = self._model(state.vector)
            self.evaluated = taken, held_out_loss(model, self.process, self.task, self.settings, self.seed)
        return self.evaluated[1]

    def _save(self) -> None:
        if self.folder is not None and self.checkpoint != self.folder.file(self.taken):
            self.checkpoint = self.folder.save(self.taken, self.state, self.log)

    def _close(self) -> None:
        """Save, then close the last record: it stays open in the checkpoint, as it is in a run that goes on."""
        self._save()
        self.log.record(self.taken)

    def _model(self, vector: Any) -> Model:
        return real_vector(self.model)[1](vector)

    def _finished(self) -> Training[Model]:
        self._close()
        average = self.state.average
        return Training(
            self._model(self.state.vector),
            None if average is None else self._model(average),
            *self.log.arrays(),
            self._evaluate(self.taken, self.state),
            self._result(),
            self.checkpoint,
        )

    def _result(self) -> Outcome:
        if self.failure:
            return self.failure
        return Outcome.FINISHED if self.taken == self.settings.steps else Outcome.INTERRUPTED
