"""The folder of one training run: its checkpoints, and how a run continues from the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from mesascope.objectives import Task
from mesascope.records import (
    CheckpointError,
    checkpoint_files,
    checkpoint_name,
    folder_lock,
    read_checkpoint,
    remove_leftovers,
    require_lock,
)

from ._checkpoint import describe_tree, read_arrays, refuse_other_fields, write_model
from ._optimizer import Optimizer
from ._parameters import real_vector
from ._training_log import TrainingLog
from ._training_settings import TrainingSettings
from ._training_steps import TrainingState

_PURPOSE = "checkpoints"  # of the lock
_DECISIVE = ("batch", "precision", "held_out", "record_every")  # settings


@dataclass(frozen=True)
class RunFolder:
    """The folder of the checkpoints of a run.

    Attributes:
        path: the folder, made when the run begins.
        model: the start of the run.
        facts: what must be equal for a run to go on from a checkpoint.
    """

    path: Path
    model: eqx.Module
    facts: dict[str, str]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder while a run writes to it; created if missing, and checked to be writable.

        Raises:
            CheckpointError: it is a file.
            InUseError: another run uses it.
            RecordError: it cannot be written to.
        """
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(f"{self.path}: is not a folder; name one for the checkpoints")
        with folder_lock(self.path, _PURPOSE):
            remove_leftovers(self.path)
            yield

    def last(self) -> tuple[int, Path] | None:
        """The number of steps and the file of the last checkpoint."""
        return max(checkpoint_files(self.path).items(), default=None)

    def file(self, step: int) -> Path:
        """The checkpoint after `step` steps."""
        return self.path / checkpoint_name(step)

    def save(self, step: int, state: TrainingState, log: TrainingLog) -> Path:
        """Write a checkpoint, atomically; earlier ones stay.

        Raises:
            RecordError: it cannot be written, or the folder was moved or removed.
        """
        require_lock(self.path, _PURPOSE)
        path, more = self.file(step), (state.average, state.optimizer)
        model = real_vector(self.model)[1](state.vector)
        facts = {
            "step": step,
            "run": self.facts,
            "start": _sizes(self.model),
            "log": asdict(log),
            "state": describe_tree(more, "state"),
        }
        write_model(path, model, more, facts)
        return path

    def resume(self, state: TrainingState, steps: int) -> tuple[int, TrainingState, TrainingLog]:
        """The last checkpoint's step, state and log; `state` itself at step 0 where there is none.

        Raises:
            CheckpointError: it is of another run, torn, or beyond `steps`.
        """
        found = self.last()
        if found is None:
            return 0, state, TrainingLog()
        step, path = found
        header, payload = read_checkpoint(path, "weights", "run", "state", "start", "log")
        more = (state.average, state.optimizer)
        refuse_other_fields(path, header["weights"], describe_tree(self.model))
        refuse_other_fields(path, header["run"], self.facts)
        refuse_other_fields(path, header["state"], describe_tree(more, "state"))
        self._refuse_other_start(path, header["start"])
        if step > steps:
            raise CheckpointError(
                f"{path}: this run has taken {step} steps already, more than the {steps} asked for; "
                "ask for more or choose another folder"
            )
        model, (average, optimizer) = read_arrays(path, payload, (self.model, more))
        vector = real_vector(model)[0].astype(state.vector.dtype)
        return step, TrainingState(vector, optimizer, average), TrainingLog(**header["log"])

    def _refuse_other_start(self, path: Path, there: list[float]) -> None:
        here = _sizes(self.model)
        if not np.allclose(there, here, rtol=1e-4, atol=1e-4 * here[0]):
            raise CheckpointError(
                f"{path}: is a checkpoint of a run from another start: its weights had norm {there[0]:.6g} and sum "
                f"{there[1]:.6g} there, here {here[0]:.6g} and {here[1]:.6g}; pass the same start or choose another folder"
            )


def require_data_of_run(path: Path, process: Any, task: Task) -> None:
    """Refuse a checkpoint that was trained on other data, such as one beside which another specification was put.

    Raises:
        CheckpointError: names what differs, with both values.
    """
    header, _ = read_checkpoint(path, "run")
    wanted = _data_facts(process, task)
    refuse_other_fields(path, {name: header["run"].get(name) for name in wanted}, wanted)


def _data_facts(process: Any, task: Task) -> dict[str, str]:
    return {"process": repr(process), "task": repr(task)}


def _sizes(model: eqx.Module) -> list[float]:
    """Norm and sum of all weights: they distinguish two starts, and are close on machines that round differently."""
    vector = np.asarray(real_vector(model)[0], float)
    return [float(np.linalg.norm(vector)), float(vector.sum())]


def run_facts(process: Any, task: Task, settings: TrainingSettings, seed: int) -> dict[str, str]:
    """What determines every bit of a run and of its evaluations, except the model and its weights at the start."""
    optimizer = settings.optimizer
    named = isinstance(optimizer, Optimizer)
    facts = {
        **_data_facts(process, task),
        "optimizer": repr(optimizer) if named else "an optax transformation",
        "seed": str(seed),
        "average": str(settings.decay),
    }
    facts |= {name: str(getattr(settings, name)) for name in _DECISIVE}
    if isinstance(optimizer, Optimizer) and optimizer.schedule != "constant":
        facts["length of the schedule, which ends with the run,"] = f"{settings.steps} steps"
    return facts
