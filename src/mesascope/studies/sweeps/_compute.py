"""What a run can be, and how each kind is computed: numbers for the record, the path as labelled arrays, the error."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from mesascope.specs import Spec

from .._certify import CertifyModelSpec, CertifySpec, certify_spec
from .._flow import FlowResult, FlowSpec, follow_together
from .._identify import IdentifySpec
from .._loss import LossSpec
from .._model_flow import ModelFlowSpec, flow_spec
from .._model_loss import ModelLossSpec, loss_spec
from .._model_problem import named_weights
from .._read import Kind as KindOfSpec
from .._train import TrainSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow

Kind: TypeAlias = Literal["flow", "train", "identify", "certify", "loss"]

SPECS: dict[str, KindOfSpec[Any]] = {
    "flow": flow_spec,
    "train": TrainSpec,
    "identify": IdentifySpec,
    "certify": certify_spec,
    "loss": loss_spec,
}
"""Kind of run → its specification."""
_SAVES = 32  # points of a path, at most
_MAX_ENTRIES = 4096  # of weights in a record; larger weights are only in the path


class Computed(NamedTuple):
    """The result of a run.

    Attributes:
        outcome: numbers, strings and lists of them, for the record.
        data: the path, name → (dimensions, values); None if there is none.
        error: why it failed; None if it did not.
    """

    outcome: dict[str, Any]
    data: Mapping[str, tuple[Any, Any]] | None = None
    error: str | None = None


def compute(spec: Spec, folder: Path) -> Computed:
    """Run a specification. Checkpoints of a training are in `folder`; it resumes from the last one.

    Raises:
        KeyboardInterrupt: it was interrupted; there is nothing to record.
        Exception: as the library raises it.
    """
    return _COMPUTE[type(spec)](spec, folder)


def compute_together(specs: Sequence[FlowSpec]) -> list[Computed]:
    """Run flows that can be solved together (see `program_of`).

    Raises:
        Exception: as the library raises it; there is no result of any of them then.
    """
    followed = follow_together(specs, saves=_SAVES)
    return [_of_flow(spec, result, path) for spec, (result, path) in zip(specs, followed, strict=True)]


def _flow(spec: FlowSpec, folder: Path) -> Computed:
    result, path = spec.follow(saves=_SAVES)
    return _of_flow(spec, result, path)


def _of_flow(spec: FlowSpec, result: FlowResult, path: "Flow[Any] | Descent[Any]") -> Computed:
    import numpy as np

    error = _failure(result)
    outcome = result.model_dump()
    if 6 * spec.dim**2 > _MAX_ENTRIES:
        del outcome["w_kq"], outcome["w_pv"]
    along, data = _path(path)
    data |= {
        "w_kq": ((along, "row", "column"), np.asarray(path.trajectory.w_kq)),
        "w_pv": ((along, "output", "column"), np.asarray(path.trajectory.w_pv)),
    }
    return Computed(outcome, data, error)


def _model_flow(spec: ModelFlowSpec, folder: Path) -> Computed:
    import numpy as np

    from mesascope.objectives import losses

    problem = spec.build()
    result, path = spec.follow(problem, saves=_SAVES)
    outcome = result.model_dump()
    weights = named_weights(path.trajectory)
    along, data = _path(path)
    points = len(data[along][1])
    if sum(one.size for one in weights.values()) > _MAX_ENTRIES * points:
        del outcome["weights"]
    if (objective := problem.test_objective) is not None:
        data["test_loss"] = (along, losses(objective, path.trajectory))
    for name, values in weights.items():
        axes = (f"{name}_{i}" for i in range(values.ndim - 1))
        data[name] = ((along, *axes), np.asarray(values))
    return Computed(outcome, data, _failure(result))


def _path(path: "Flow[Any] | Descent[Any]") -> tuple[str, dict[str, tuple[Any, Any]]]:
    """The name of the axis along a path; its places, and the losses there."""
    import numpy as np

    from mesascope.dynamics import Descent

    along, places = ("step", path.steps) if isinstance(path, Descent) else ("time", path.times)
    return along, {along: (along, np.asarray(places)), "loss": (along, np.asarray(path.loss))}


def _train(spec: TrainSpec, folder: Path) -> Computed:
    result = spec.run(folder / "checkpoint")
    error = _failure(result)
    outcome = result.model_dump(exclude={"losses", "evaluations", "checkpoint"})
    data: dict[str, tuple[Any, Any]] = {
        "step": ("step", [one.steps for one in result.losses]),
        "loss": ("step", [one.loss for one in result.losses]),
    }
    if result.evaluations:
        data |= {
            "evaluation_step": ("evaluation_step", [one.steps for one in result.evaluations]),
            "evaluation_loss": ("evaluation_step", [one.loss for one in result.evaluations]),
            "evaluation_standard_error": (
                "evaluation_step",
                [one.standard_error for one in result.evaluations],
            ),
        }
    if result.checkpoint is not None:
        outcome["checkpoint"] = Path(result.checkpoint).name
    return Computed(outcome, data, error)


def _failure(result: Any) -> str | None:
    """Why a flow or a training failed.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if result.result == "interrupted":
        raise KeyboardInterrupt
    return None if result.succeeded else f"{result.result}: {result.message}"


def _identify(spec: IdentifySpec, folder: Path) -> Computed:
    run = spec.build()
    record = run.record(run.identify())
    best = record.ranking[0]
    ranking = [entry.model_dump(mode="json") for entry in record.ranking]
    return Computed(
        {
            "verdict": record.verdict,
            "headline": record.headline,
            "candidates": list(record.candidates),
            "mixtures": [one.model_dump(mode="json") for one in record.mixtures],
            "learner": best.learner,
            "distance": best.distance,
            "interval": list(best.interval),
            "ranking": ranking,
            "reasons": list(record.reasons),
        }
    )


def _certify(spec: CertifySpec | CertifyModelSpec, folder: Path) -> Computed:
    record = spec.run()
    return Computed({"proved": True, **record.model_dump(mode="json", exclude={"provenance", "spec"})})


def _loss(spec: LossSpec | ModelLossSpec, folder: Path) -> Computed:
    result = spec.run()
    error = None if result.finite else "the loss or its gradient leaves double precision; use smaller weights"
    outcome = result.model_dump()
    if isinstance(spec, ModelLossSpec):
        del outcome["gradient"]  # of any size; `mesascope loss --json` prints it
    return Computed(outcome, None, error)


_COMPUTE: dict[type[Spec], Callable[[Any, Path], Computed]] = {
    FlowSpec: _flow,
    TrainSpec: _train,
    IdentifySpec: _identify,
    CertifySpec: _certify,
    CertifyModelSpec: _certify,
    LossSpec: _loss,
    ModelFlowSpec: _model_flow,
    ModelLossSpec: _loss,
}
FIELDS = frozenset(name for spec in _COMPUTE for name in spec.model_fields)
"""The fields of all specifications of runs."""
