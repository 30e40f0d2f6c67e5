"""Which algorithm a model runs at every checkpoint of its training: the specification, and what it builds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationInfo, model_validator

from mesascope.core import Progress
from mesascope.specs import Count, Spec, error_path

from ._checkpoints import Checkpoints
from ._identify import Judged
from ._identify_models import PathOfRun, path_of_run, refuse_other_data, run_at, with_data_of

if TYPE_CHECKING:
    from mesascope.objectives import Task
    from mesascope.probes import AlongTraining
    from mesascope.processes import PromptProcess, SequenceProcess
    from mesascope.records import AlongRecord


@dataclass(frozen=True)
class AlongRun:
    """The objects that an `AlongSpec` builds.

    Attributes:
        spec: the specification.
        models: the checkpoints.
        process: the process that draws the data.
        task: which predictions count.
        settings: arguments of `identify_along`: `identify_along(models, process, task, **settings)`.
    """

    spec: Spec
    models: Mapping[int, Any]
    process: "SequenceProcess | PromptProcess"
    task: "Task"
    settings: Mapping[str, Any]

    def identify_along(self, progress: "Callable[[Progress], None] | None" = None) -> "AlongTraining":
        """Compare every checkpoint with the learners.

        Raises:
            CheckpointError: a checkpoint cannot be read; all are read first, before the long work.
            SpecError: `mesascope.probes.identify_along` refuses the settings.
        """
        from mesascope.probes import identify_along

        for step in self.models:
            self.models[step]
        with error_path():
            return identify_along(self.models, self.process, self.task, **self.settings, progress=progress)

    def record(self, found: "AlongTraining") -> "AlongRecord":
        """The result as plain numbers, to be stored."""
        return found.record(self.spec.model_dump(mode="json"))


class AlongSpec(Judged):
    """A training run whose algorithm is identified at every checkpoint.

    Process, length and weights may be left out: they are those of the run. (A process that is given replaces law and dim too.)

    Attributes:
        run: the folder of the run, not one of its checkpoints; a relative path starts at the folder of the specification.
        seed: of the tasks.
        tasks: number of tasks; learners are fitted on one half and compared on the other.
    """

    run: PathOfRun
    tasks: Count = 500

    @model_validator(mode="before")
    @classmethod
    def _take_the_data_of_the_run(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or "run" not in data:
            return data
        with error_path("run"):
            return with_data_of(run_at(path_of_run(data["run"], info)), data)

    @model_validator(mode="after")
    def _model_reads_the_data(self) -> Self:
        with error_path("run"):
            refuse_other_data(self.run, self.shape)
        return self

    def build(self) -> AlongRun:
        """Return checkpoints, process, task and settings.

        Raises:
            SpecError: the library refuses a field.
            CheckpointError: the folder holds no checkpoints of a run.
            ValueError: 64-bit mode is off.
        """
        from mesascope.core import require_x64

        require_x64("identify_along")
        process, task = self.build_data()
        settings = {"tasks": self.tasks, **self.judging()}
        with error_path("run"):
            return AlongRun(self, Checkpoints(self.run), process, task, settings)
