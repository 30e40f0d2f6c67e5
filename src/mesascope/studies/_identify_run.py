"""A question to a model, ready to be asked, and its answer as a record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress
from mesascope.specs import Spec, error_path

if TYPE_CHECKING:
    from mesascope.objectives import Task
    from mesascope.probes import Curves, Identification, Measured, Reading
    from mesascope.processes import PromptProcess, SequenceProcess
    from mesascope.records import IdentificationRecord


@dataclass(frozen=True)
class IdentifyRun:
    """What a specification builds.

    Attributes:
        spec: the specification.
        model: the model.
        process: what draws the data.
        task: which predictions count.
        settings: how to ask: `identify(model, process, task, **settings)`.
    """

    spec: Spec
    model: Any
    process: "SequenceProcess | PromptProcess"
    task: "Task"
    settings: Mapping[str, Any]

    def identify(self, progress: "Callable[[Progress], None] | None" = None) -> "Identification":
        """Ask.

        Raises:
            SpecError: what `mesascope.probes.identify` refuses.
        """
        from mesascope.probes import identify

        with error_path():
            return identify(self.model, self.process, self.task, **self.settings, progress=progress)

    def curves(self, found: "Identification") -> "Curves":
        """Ask once more, for the numbers that figures show."""
        from mesascope.probes import identification_curves

        asking = {name: self.settings[name] for name in ("tasks", "seed", "level")}
        return identification_curves(self.model, self.process, self.task, found, **asking)

    def record(self, found: "Identification", curves: "Curves | None" = None) -> "IdentificationRecord":
        """What was found as plain numbers, fit to be stored."""
        from mesascope.records import IdentificationRecord, provenance

        parts = {name: getattr(found, name) for name in ("verdict", "candidates", "reasons")}
        asking = {name: self.settings[name] for name in ("tasks", "seed", "tolerance", "level")}
        return IdentificationRecord(
            **parts,
            **asking,
            ranking=tuple(_fields(entry, "algorithm") for entry in found.ranking),
            separated_by=tuple(map(_fields, found.separated_by)),
            reading=None if found.reading is None else _reading(found.reading),
            process=self.process.describe(),
            task=self.task.describe(),
            spec=self.spec.model_dump(mode="json"),
            provenance=provenance(),
            curves=None if curves is None else _curves(curves),
        )


def _fields(entry: Any, *without: str) -> Any:
    return {name: value for name, value in entry._asdict().items() if name not in without}


def _reading(reading: "Reading") -> Any:
    return {**_fields(reading, "learner"), "signs": reading.signs.tolist(), "description": reading.describe()}


def _curves(curves: "Curves") -> Any:
    def records(measured: Mapping[str, "Measured"]) -> Any:
        return tuple({"name": name, **one._asdict()} for name, one in measured.items())

    return {
        "lengths": curves.lengths.tolist(),
        "errors": records(curves.errors),
        "distances": records(curves.distances),
        "names": curves.names,
        "differences": curves.differences.tolist(),
    }
