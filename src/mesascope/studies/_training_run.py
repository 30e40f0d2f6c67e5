"""A training run, ready to start, and the specification that it leaves beside its checkpoints."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._base import Spec
from ._errors import show
from ._read import read_spec

if TYPE_CHECKING:
    from mesascope.dynamics import Training, TrainingProgress
    from mesascope.objectives import Task
    from mesascope.processes import PromptProcess, SequenceProcess

SPEC_FILE = "spec.json"
# What may change when a run goes on; what else the library refuses, say steps under a schedule, it refuses itself.
_CHANGEABLE = ("steps", "held_out", "evaluate_every", "checkpoint_every")


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
        progress: "Callable[[TrainingProgress], None] | None" = None,
    ) -> "Training[Any]":
        """Train.

        Args:
            folder: for checkpoints, and the specification as `spec.json` beside them; without it nothing is kept. The
                same specification in the same folder resumes, and more steps extend the run.
            progress: called with a `TrainingProgress` at every record; a KeyboardInterrupt ends the run and keeps what
                was computed.

        Raises:
            CheckpointError: the folder holds another run (names the field), or a torn checkpoint.
            RecordError: the folder cannot be written to.
        """
        from mesascope.dynamics import train

        if folder is not None:
            _keep_spec(Path(folder), self.spec)
        return train(
            self.model,
            self.process,
            self.task,
            **self.settings,
            checkpoint=None if folder is None else Path(folder),
            progress=progress,
        )


def _keep_spec(folder: Path, spec: Spec) -> None:
    """Write the specification into the folder of its run, before the first checkpoint."""
    from mesascope.records import atomic_path

    path = folder / SPEC_FILE
    if any(folder.glob("step-*.checkpoint")):
        _refuse_another_run(path, spec)
    with atomic_path(path) as temporary:
        text = json.dumps(spec.model_dump(mode="json"), indent=2, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")


def _refuse_another_run(path: Path, spec: Spec) -> None:
    """Refuse a folder of another run: checkpoints do not tell how its initial weights were drawn.

    Raises:
        CheckpointError: names the first field that differs, with both values.
    """
    from mesascope.dynamics import CheckpointError

    if not path.exists():
        raise CheckpointError(
            f"{path.parent}: holds checkpoints of a run that no specification started; choose another folder"
        )
    before, now = (
        one.model_dump(mode="json", exclude=set(_CHANGEABLE)) for one in (read_spec(path, type(spec)), spec)
    )
    differs = _difference(before, now)
    if differs:
        field, there, here = differs
        raise CheckpointError(
            f"{path}: is of another run: {field} is {show(there)} there and {show(here)} here; "
            "choose another folder, or change it back"
        )


def _difference(there: Any, here: Any, field: str = "") -> tuple[str, Any, Any] | None:
    """The first field in which two tables differ, with both values."""
    if not (isinstance(there, dict) and isinstance(here, dict) and there.get("kind") == here.get("kind")):
        return None if there == here else (field, _kind(there), _kind(here))
    for name in [*here, *(name for name in there if name not in here)]:
        found = _difference(there.get(name), here.get(name), f"{field}.{name}".removeprefix("."))
        if found:
            return found
    return None


def _kind(value: Any) -> Any:
    return value.get("kind", value) if isinstance(value, dict) else value
