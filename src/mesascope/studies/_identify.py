"""Which algorithm a model runs in context: the specification of the question."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, StrictBool, ValidationInfo, model_validator

from mesascope.core import Progress
from mesascope.models import require_readable
from mesascope.specs import Count, Number, Seed, SpecError, error_path, number, show, written

from ._data import DataSpec
from ._identify_models import FlowEndSpec, IdentifiedModel, checkpoint_run
from ._identify_run import IdentifyRun

if TYPE_CHECKING:
    from mesascope.probes import Identification


def _share(value: Any) -> Number:
    given = number(value)
    if not 0 < given < 1:
        raise SpecError(f"must lie strictly between 0 and 1, such as 0.01 or 0.95, got {show(value)}")
    return given


Share: TypeAlias = Annotated[Number, PlainValidator(_share), PlainSerializer(written)]


class IdentifySpec(DataSpec):
    """A model, and the data on which it is asked which algorithm it runs.

    A model of kind "checkpoint" is asked on the data of its run: process, length and weights may then be left out, and what is
    given takes the place of what the run says. (A process that is given brings its law and dim with it.)

    Attributes:
        model: what is to be identified: any model as for training, or a table of kind "checkpoint" (path), "function" (name)
            or "flow" (init, mask, until, rho).
        tasks: how many are drawn; one half is fitted to, one half judges.
        seed: of the tasks and, where the model does not say otherwise, of its weights.
        tolerance: the relative distance, in (0, 1), up to which a learner counts as what the model does.
        level: of the intervals, in (0, 1).
        learners: ids of the learners to compare with; all of them when left out.
        search: whether the model may be asked on other data when these do not decide.
    """

    model: IdentifiedModel
    tasks: Count = 2000
    seed: Seed = 0
    tolerance: Share = 1e-2
    level: Share = 0.95
    learners: Annotated[tuple[str, ...] | None, Field(min_length=1)] = None
    search: StrictBool = True

    @model_validator(mode="before")
    @classmethod
    def _asked_on_the_data_of_the_run(cls, data: Any, info: ValidationInfo) -> Any:
        run = checkpoint_run(data.get("model"), info) if isinstance(data, Mapping) else None
        if run is None:
            return data
        names = [name for name in DataSpec.model_fields if getattr(run, name) is not None]
        if "process" in data:
            names = [name for name in names if name not in ("process", "law", "dim")]
        return {**{name: getattr(run, name) for name in names}, **data}

    @model_validator(mode="after")
    def _model_reads_the_data(self) -> Self:
        others = ("checkpoint", "function")
        require_readable(self.model.kind, self.model.reads, self.source.data, self.source.kind, *others)
        with error_path("model"):
            self.model.check(self.shape)
        if isinstance(self.model, FlowEndSpec):
            self.model.flow(self)
        return self

    def build(self) -> IdentifyRun:
        """Return model, process, task and settings, ready to ask; solves the flow of a model of kind "flow".

        Raises:
            SpecError: what the library refuses, with its field; a function that cannot be imported.
            FailedFlowError: the flow did not come to its end.
            ValueError: 64-bit mode is off.
        """
        from mesascope.core import require_x64
        from mesascope.objectives import refuse_large_batches

        require_x64("identify")
        process, task = self.build_data()
        with error_path("tasks"):
            refuse_large_batches(process, task, self.tasks)
        return IdentifyRun(self, self._model(), process, task, self._settings())

    def run(self, progress: "Callable[[Progress], None] | None" = None) -> "Identification":
        """Ask, and return what was found; as `build().identify(…)`.

        Raises:
            SpecError: as for `build`, and what `mesascope.probes.identify` refuses.
            FailedFlowError: as for `build`.
        """
        return self.build().identify(progress)

    def _model(self) -> Any:
        if isinstance(self.model, FlowEndSpec):
            return self.model.end(self)
        with error_path("model"):
            return self.model.build(self.shape, self.seed)

    def _settings(self) -> dict[str, Any]:
        """How to ask, as `identify` takes it."""
        return {
            "tasks": self.tasks,
            "seed": self.seed,
            "tolerance": float(self.tolerance),
            "level": float(self.level),
            "learners": self.learners,
            "search": self.search,
        }
