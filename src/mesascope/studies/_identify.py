"""Which algorithm a model runs in context: the specification, and what it builds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    ValidationInfo,
    model_validator,
)

from mesascope.core import Progress
from mesascope.records import MAX_PARTS
from mesascope.specs import (
    Count,
    OpenUnit,
    Seed,
    Spec,
    error_path,
    integer,
)

from ._data import DataSpec
from ._identify_models import FlowEndSpec, IdentifiedModel, checkpoint_run, with_data_of

if TYPE_CHECKING:
    from mesascope.objectives import Task
    from mesascope.probes import Identification
    from mesascope.processes import PromptProcess, SequenceProcess
    from mesascope.records import IdentificationRecord


@dataclass(frozen=True)
class IdentifyRun:
    """The objects that an `IdentifySpec` builds.

    Attributes:
        spec: the specification.
        model: the model.
        process: the process that draws the data.
        task: which predictions count.
        settings: arguments of `identify`: `identify(model, process, task, **settings)`.
    """

    spec: Spec
    model: Any
    process: "SequenceProcess | PromptProcess"
    task: "Task"
    settings: Mapping[str, Any]

    def identify(self, progress: "Callable[[Progress], None] | None" = None) -> "Identification":
        """Compare the model with the learners.

        Raises:
            SpecError: `mesascope.probes.identify` refuses the settings.
        """
        from mesascope.probes import identify

        with error_path():
            return identify(self.model, self.process, self.task, **self.settings, progress=progress)

    def record(self, found: "Identification", *, curves: bool = True) -> "IdentificationRecord":
        """The result as plain numbers, to be stored; with the curves of its figures, unless `curves` is false."""
        return found.record(self.spec.model_dump(mode="json"), curves=curves)


class Judged(DataSpec):
    """How learners are compared with models.

    Attributes:
        seed: of the tasks and, unless the model has its own seed, of its weights.
        tolerance: the relative distance, in (0, 1), up to which a learner counts as the algorithm of the model.
        level: confidence level of the intervals, in (0, 1).
        learners: ids of the learners to compare with; all when left out.
        parts: the largest number of learners in a mixture, 1 to 3; 1 tries none.
    """

    seed: Seed = 0
    tolerance: OpenUnit = 1e-2
    level: OpenUnit = 0.95
    learners: Annotated[tuple[str, ...] | None, Field(min_length=1)] = None
    parts: Annotated[int, BeforeValidator(integer), Field(ge=1, le=MAX_PARTS)] = 1

    def judging(self) -> dict[str, Any]:
        """The arguments of `identify` and `identify_along` that these fields are."""
        return {
            "seed": self.seed,
            "tolerance": float(self.tolerance),
            "level": float(self.level),
            "learners": self.learners,
            "parts": self.parts,
        }


class IdentifySpec(Judged):
    """A model, and the data on which its algorithm is identified.

    For a model of kind "checkpoint", process, length and weights may be left out: they are those of its run. (A process that is
    given replaces law and dim too.)

    Attributes:
        model: the model to identify: any model as for training, or a table of kind "checkpoint" (path), "function" (name)
            or "flow" (init, mask, until, rho).
        tasks: number of tasks; learners are fitted on one half and compared on the other.
        search: whether other data may be tried if these cannot separate the candidates.
    """

    model: IdentifiedModel
    tasks: Count = 2000
    search: StrictBool = True

    @model_validator(mode="before")
    @classmethod
    def _take_the_data_of_the_run(cls, data: Any, info: ValidationInfo) -> Any:
        run = checkpoint_run(data.get("model"), info) if isinstance(data, Mapping) else None
        return data if run is None else with_data_of(run, data)

    @model_validator(mode="after")
    def _model_reads_the_data(self) -> Self:
        self.check_model(self.model, "checkpoint", "function")
        if isinstance(self.model, FlowEndSpec):
            self.model.flow(self)
        return self

    def build(self) -> IdentifyRun:
        """Return model, process, task and settings; solves the flow of a model of kind "flow".

        Raises:
            SpecError: the library refuses a field, or a function cannot be imported.
            FailedFlowError: the flow did not reach its end.
            ValueError: 64-bit mode is off.
        """
        from mesascope.core import require_x64

        require_x64("identify")
        process, task = self.build_data()
        settings = {"tasks": self.tasks, "search": self.search, **self.judging()}
        return IdentifyRun(self, self._model(), process, task, settings)

    def run(self, progress: "Callable[[Progress], None] | None" = None) -> "Identification":
        """Identify the algorithm; as `build().identify(…)`.

        Raises:
            SpecError: as for `build` and `IdentifyRun.identify`.
            FailedFlowError: as for `build`.
        """
        return self.build().identify(progress)

    def _model(self) -> Any:
        if isinstance(self.model, FlowEndSpec):
            return self.model.end(self)
        with error_path("model"):
            return self.model.build(self.shape, self.seed)
