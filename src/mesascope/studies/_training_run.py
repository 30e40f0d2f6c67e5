"""Training runs of one seed or several, ready to start, and their specification in the folder of the checkpoints."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress
from mesascope.specs import Spec, show

from ._read import read_recorded
from ._train_result import TrainManyResult, TrainResult

if TYPE_CHECKING:
    from mesascope.core import Estimate
    from mesascope.dynamics import Training
    from mesascope.objectives import Task
    from mesascope.processes import PromptProcess, SequenceProcess

SPEC_FILE = "spec.json"
# Fields that may change when a run resumes; the library itself refuses others, such as steps under a schedule.
_CHANGEABLE = ("steps", "evaluate_every", "checkpoint_every", "checkpoints_per_decade", "checkpoint_minutes")


@dataclass(frozen=True)
class TrainingRun:
    """The objects that a `TrainSpec` builds.

    Attributes:
        spec: the specification.
        model: the model with its initial weights.
        process: the process that draws the data.
        task: which predictions count.
        settings: the fields of `TrainingSettings`: `train(model, process, task, seed=seed, **settings)`.
        seed: of the samples.
    """

    spec: Spec
    model: Any
    process: "SequenceProcess | PromptProcess"
    task: "Task"
    settings: Mapping[str, Any]
    seed: int

    def train(
        self,
        folder: str | PathLike[str] | None = None,
        progress: "Callable[[Progress], None] | None" = None,
    ) -> "Training[Any]":
        """Train.

        Args:
            folder: for checkpoints and the specification, `spec.json`; without it nothing is written. The same
                specification in the same folder resumes, and more steps extend the run.
            progress: called with a `Progress` at every record; a KeyboardInterrupt ends the run, with the result
                until then.

        Raises:
            CheckpointError: the folder holds another run (names the field), or a damaged checkpoint.
            InUseError: another run writes to the folder now.
            RecordError: the folder cannot be written to.
        """
        from mesascope.dynamics import train

        with nullcontext() if folder is None else recorded_spec(Path(folder), self.spec):
            return train(
                self.model,
                self.process,
                self.task,
                seed=self.seed,
                **self.settings,
                checkpoint=None if folder is None else Path(folder),
                progress=progress,
            )

    def result(self, training: "Training[Any]") -> TrainResult:
        """The result of `train` as plain numbers, with the loss of the moving average."""
        return TrainResult.of(training, self._average_loss(training))

    def _average_loss(self, training: "Training[Any]") -> "Estimate | None":
        """The loss of the moving average, on the samples and in the precision of `training.loss`."""
        from mesascope.dynamics import TrainingSettings, held_out_loss

        if training.average is None:
            return None
        settings = TrainingSettings.of(**self.settings)
        return held_out_loss(training.average, self.process, self.task, settings, self.seed)


@contextmanager
def recorded_spec(folder: Path, spec: Spec) -> Iterator[None]:
    """Lock the folder of the run that the block computes, and write the specification into it.

    It is written before the first checkpoint of a new run, but after the block if the folder holds checkpoints: the block may
    refuse to resume from them, and fields that may change do not matter to them.
    """
    from mesascope.records import checkpoint_files, folder_lock

    path = folder / SPEC_FILE
    with folder_lock(folder, "spec"):
        resumed = bool(checkpoint_files(folder))
        if resumed:
            _refuse_another_run(path, spec)
        else:
            _write_spec(path, spec)
        yield
        if resumed:
            _write_spec(path, spec)


def _write_spec(path: Path, spec: Spec) -> None:
    from mesascope.records import atomic_path

    with atomic_path(path) as temporary:
        text = json.dumps(spec.model_dump(mode="json"), indent=2, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")


def _refuse_another_run(path: Path, spec: Spec) -> None:
    """Refuse a folder of another run: its checkpoints do not hold how the initial weights were drawn.

    Raises:
        CheckpointError: names the first field that differs, with both values.
    """
    from mesascope.dynamics import CheckpointError
    from mesascope.records import difference

    if not path.exists():
        raise CheckpointError(
            f"{path.parent}: holds checkpoints of a run not started from a specification; choose another folder (--out)"
        )
    before, now = (
        one.model_dump(mode="json", exclude={*_CHANGEABLE, "plugins"})
        for one in (read_recorded(path, type(spec)), spec)
    )
    differs = difference(before, now)
    if differs:
        field, there, here = differs
        raise CheckpointError(
            f"{path}: is of another run: {field} is {show(_kind(there))} there and {show(_kind(here))} here; "
            "choose another folder (--out), or change it back"
        )


def _kind(value: Any) -> Any:
    return value.get("kind", value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class TrainingRuns:
    """The runs that a `TrainSpec` of several seeds builds.

    Attributes:
        runs: the run of every seed, the same as the run of a specification with that seed alone.
    """

    runs: Mapping[int, TrainingRun]

    @property
    def task(self) -> "Task":
        """Which predictions count, the same in all runs."""
        return next(iter(self.runs.values())).task

    def train(
        self,
        folder: str | PathLike[str] | None = None,
        progress: "Callable[[int, Progress], None] | None" = None,
    ) -> "list[Training[Any]]":
        """Train all runs, in the order of the seeds; see `mesascope.dynamics.train_many`.

        Args:
            folder: for one subfolder `seed-…` for each run, as of `TrainingRun.train`.
            progress: called with (seed, `Progress`) at every record, from the thread of the run.

        Raises:
            CheckpointError: a subfolder holds another run (names the field), or a damaged checkpoint.
            InUseError: another run writes to a subfolder now.
            RecordError: a subfolder cannot be written to.
        """
        from mesascope.core import named_key
        from mesascope.dynamics import train_many

        one = next(iter(self.runs.values()))
        # train_many identifies a run by its key; the specification has drawn its weights for the seed
        starts = {_bits(named_key(seed, "model")): run.model for seed, run in self.runs.items()}
        with ExitStack() as specs:
            if folder is not None:
                for seed, run in self.runs.items():
                    specs.enter_context(recorded_spec(Path(folder) / f"seed-{seed}", run.spec))
            return train_many(
                lambda key: starts[_bits(key)],
                one.process,
                one.task,
                list(self.runs),
                checkpoint=None if folder is None else Path(folder),
                progress=progress,
                **one.settings,
            )

    def result(self, trainings: "Sequence[Training[Any]]") -> TrainManyResult:
        """The result of `train` as plain numbers."""
        pairs = zip(self.runs.items(), trainings, strict=True)
        return TrainManyResult.of({seed: run.result(training) for (seed, run), training in pairs})


def _bits(key: Any) -> bytes:
    import jax
    import numpy as np

    return np.asarray(jax.random.key_data(key)).tobytes()
