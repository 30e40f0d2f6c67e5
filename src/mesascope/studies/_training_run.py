"""A training run, ready to start, and the specification that it leaves beside its checkpoints."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress
from mesascope.specs import Spec, show

from ._read import read_spec
from ._train_result import TrainResult

if TYPE_CHECKING:
    from mesascope.core import Estimate
    from mesascope.dynamics import Training
    from mesascope.objectives import Task
    from mesascope.processes import PromptProcess, SequenceProcess

SPEC_FILE = "spec.json"
# What may change when a run goes on; what else the library refuses, say steps under a schedule, it refuses itself.
_CHANGEABLE = ("steps", "evaluate_every", "checkpoint_every")


@dataclass(frozen=True)
class TrainingRun:
    """What a specification builds.

    Attributes:
        spec: the specification.
        model: the model with its initial weights.
        process: what draws the data.
        task: which predictions count.
        settings: how to train: `train(model, process, task, **settings)`.
    """

    spec: Spec
    model: Any
    process: "SequenceProcess | PromptProcess"
    task: "Task"
    settings: Mapping[str, Any]

    def train(
        self,
        folder: str | PathLike[str] | None = None,
        progress: "Callable[[Progress], None] | None" = None,
    ) -> "Training[Any]":
        """Train.

        Args:
            folder: for checkpoints, and the specification as `spec.json` beside them; without it nothing is kept. The
                same specification in the same folder resumes, and more steps extend the run.
            progress: called with a `Progress` at every record; a KeyboardInterrupt ends the run and keeps what
                was computed.

        Raises:
            CheckpointError: the folder holds another run (names the field), or a torn checkpoint.
            InUseError: another run writes to the folder now.
            RecordError: the folder cannot be written to.
        """
        from mesascope.dynamics import train

        with nullcontext() if folder is None else kept_spec(Path(folder), self.spec):
            return train(
                self.model,
                self.process,
                self.task,
                **self.settings,
                checkpoint=None if folder is None else Path(folder),
                progress=progress,
            )

    def result(self, training: "Training[Any]") -> TrainResult:
        """What came out of `train` as plain numbers, the loss of the moving average included."""
        return TrainResult.of(training, self._average_loss(training))

    def _average_loss(self, training: "Training[Any]") -> "Estimate | None":
        """The loss of the moving average on the samples, and in the precision, of `training.loss`."""
        from mesascope.dynamics import TrainingSettings, held_out_loss

        if training.average is None:
            return None
        settings = {name: value for name, value in self.settings.items() if name != "seed"}
        return held_out_loss(
            training.average, self.process, self.task, TrainingSettings(**settings), self.settings["seed"]
        )


@contextmanager
def kept_spec(folder: Path, spec: Spec) -> Iterator[None]:
    """Keep the specification in the folder of the run that the block makes.

    A new folder gets it before the first checkpoint. One that holds checkpoints gets it afterwards: the block may refuse to
    go on from them, and what changed until then decides nothing that they need. Nobody else gets the folder meanwhile.
    """
    from mesascope.records import folder_lock

    path = folder / SPEC_FILE
    with folder_lock(folder, "spec"):
        resumed = any(folder.glob("step-*.checkpoint"))
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
    """Refuse a folder of another run: checkpoints do not tell how its initial weights were drawn.

    Raises:
        CheckpointError: names the first field that differs, with both values.
    """
    from mesascope.dynamics import CheckpointError
    from mesascope.records import difference

    if not path.exists():
        raise CheckpointError(
            f"{path.parent}: holds checkpoints of a run that no specification started; choose another folder (--out)"
        )
    before, now = (
        one.model_dump(mode="json", exclude=set(_CHANGEABLE)) for one in (read_spec(path, type(spec)), spec)
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
