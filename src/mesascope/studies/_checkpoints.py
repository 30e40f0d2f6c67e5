"""The checkpoints of a training run, as models by their number of steps."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._train import TrainSpec, trained_spec

if TYPE_CHECKING:
    from mesascope.objectives import Task
    from mesascope.processes import PromptProcess, SequenceProcess


class Checkpoints(Mapping[int, Any]):
    """The checkpoints that a run has kept: numbers of training steps → models, each read when it is asked for.

    `ms.identify_along(found, found.process, found.task)` follows the algorithm of the model along them.

    Args:
        run: the folder of a run of `mesascope train`, or of `TrainSpec.run`.

    Attributes:
        path: the folder.
        spec: the specification of the run.

    Raises:
        CheckpointError: it is not a folder of a run, or holds no checkpoint.
        SpecError: its specification cannot be read.
    """

    def __init__(self, run: str | PathLike[str]) -> None:
        from mesascope.records import CheckpointError, checkpoint_files

        self.path = Path(run)
        if not self.path.is_dir():
            what = "is not the folder of a run" if self.path.exists() else "there is no such folder"
            raise CheckpointError(f"{run}: {what}; name one that mesascope train has filled")
        self.spec: TrainSpec = trained_spec(self.path)
        self._files = checkpoint_files(self.path)
        self._start: Any = None

    def __getitem__(self, step: int) -> Any:
        from mesascope.dynamics import load_model, require_data_of_run

        if self._start is None:
            self._start = self.spec.build_model()
        require_data_of_run(self._files[step], *self._data)
        return load_model(self._files[step], self._start)

    def __iter__(self) -> Iterator[int]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @cached_property
    def _data(self) -> "tuple[SequenceProcess | PromptProcess, Task]":
        return self.spec.build_data()

    @property
    def process(self) -> "SequenceProcess | PromptProcess":
        """What the run was trained on."""
        return self._data[0]

    @property
    def task(self) -> "Task":
        """Which predictions counted."""
        return self._data[1]

    def __repr__(self) -> str:
        return f"<Checkpoints of {self.path}: {len(self)}, after {min(self)} to {max(self)} steps>"
