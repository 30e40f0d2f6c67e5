"""What a run can be, and how each kind is computed: numbers for the record, the path as labelled arrays, the error."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from mesascope.specs import Spec

from .._certify import CertifySpec
from .._flow import FlowResult, FlowSpec, follow_together
from .._identify import IdentifySpec
from .._loss import LossSpec
from .._train import TrainSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow

Kind: TypeAlias = Literal["flow", "train", "identify", "certify", "loss"]

SPECS: dict[str, type[Spec]] = {
    "flow": FlowSpec,
    "train": TrainSpec,
    "identify": IdentifySpec,
    "certify": CertifySpec,
    "loss": LossSpec,
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
    error = _failure(result)
    outcome = result.model_dump()
    if 6 * spec.dim**2 > _MAX_ENTRIES:
        del outcome["w_kq"], outcome["w_pv"]
    return Computed(outcome, _path(path), error)


def _path(path: "Flow[Any] | Descent[Any]") -> dict[str, tuple[Any, Any]]:
    import numpy as np

    from mesascope.dynamics import Descent

    along, places = ("step", path.steps) if isinstance(path, Descent) else ("time", path.times)
    losses = path.loss if isinstance(path, Descent) else _losses(path)
    return {
        along: (along, np.asarray(places)),
        "loss": (along, np.asarray(losses)),
        "w_kq": ((along, "row", "column"), np.asarray(path.trajectory.w_kq)),
        "w_pv": ((along, "output", "column"), np.asarray(path.trajectory.w_pv)),
    }


def _losses(flow: "Flow[Any]") -> Any:
    """The losses along a path, padded to one length: a program is compiled for every length."""
    import jax
    import numpy as np

    from mesascope.objectives import losses

    count = len(flow.times)
    places = np.minimum(np.arange(_SAVES + 1), count - 1)
    points = jax.tree.map(lambda weight: np.asarray(weight)[places], flow.trajectory)
    return np.asarray(losses(flow.objective, points))[:count]


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


def _certify(spec: CertifySpec, folder: Path) -> Computed:
    record = spec.run()
    return Computed({"proved": True, **record.model_dump(mode="json", exclude={"provenance", "spec"})})


def _loss(spec: LossSpec, folder: Path) -> Computed:
    result = spec.run()
    error = None if result.finite else "the loss or its gradient leaves double precision; use smaller weights"
    return Computed(result.model_dump(), None, error)


_COMPUTE: dict[type[Spec], Callable[[Any, Path], Computed]] = {
    FlowSpec: _flow,
    TrainSpec: _train,
    IdentifySpec: _identify,
    CertifySpec: _certify,
    LossSpec: _loss,
}
