"""Models to identify: built from their specification, trained before, written by the user, ends of flows."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationError, ValidationInfo

from mesascope.models import InitField, explicit_model
from mesascope.processes import DiagonalUnitary
from mesascope.specs import (
    PROMPTS,
    SYMBOLS,
    TOKENS,
    Component,
    Rho,
    Shape,
    SpecError,
    construct,
    error_path,
    field_help,
    first_error,
    kind,
    one_line,
    one_of,
    show,
)

from ._data import DataSpec
from ._flow import FlowSpec
from ._flow_settings import MaskName, Until
from ._identify_function import named_model
from ._train import TrainSpec, load_trained, trained_spec

if TYPE_CHECKING:
    from mesascope.models import LinearAttention


class FailedFlowError(RuntimeError):
    """The flow to the model that is to be identified did not reach its end; the message says why, and the fix."""


class GivenModel(Component, family="given-model"):
    """A model that exists already: trained, written by the user, the end of a flow."""

    reads = (*TOKENS, *SYMBOLS, *PROMPTS)

    def check(self, shape: Shape) -> None:
        """Refuse data that the model does not read; by default none: the first prediction shows whether they fit."""


def path_of_run(value: Any, info: ValidationInfo) -> Path:
    """The path that a specification gives, from its folder.

    Raises:
        SpecError: it is not a path.
    """
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise SpecError(f"must be the path of a run or of a checkpoint, got {show(value)}")
    return Path((info.context or {}).get("folder", ".")) / value


# written as an absolute path: a specification may be read again from another folder
PathOfRun: TypeAlias = Annotated[Path, PlainValidator(path_of_run), PlainSerializer(os.path.abspath)]
"""The folder of a run, or one of its checkpoints."""


def run_at(path: Path) -> TrainSpec:
    """The specification of a run.

    Raises:
        SpecError: the run cannot be read.
    """
    try:
        return trained_spec(path)
    except ValueError as error:
        raise SpecError(one_line(str(error))) from None


def refuse_other_data(path: Path, shape: Shape) -> None:
    """Refuse data of another kind or dimension than the data of the training of a run.

    Raises:
        SpecError: they are.
    """
    trained = run_at(path).shape
    if (trained.data in TOKENS) != (shape.data in TOKENS) or trained.width != shape.width:
        raise SpecError(
            f"was trained on {trained.data} of dimension {trained.width}, and does not read {shape.data} of dimension "
            f"{shape.width}; choose a process that draws data as in training"
        )


@kind("checkpoint", path="/runs/example")
class CheckpointSpec(GivenModel):
    """A model that `mesascope train` has trained.

    Args:
        path: the folder of the run, or one of its checkpoints; a relative path starts at the folder of the specification.
    """

    path: PathOfRun

    def check(self, shape: Shape) -> None:
        """Refuse data of another kind or dimension than the data of its training."""
        with error_path("path"):
            refuse_other_data(self.path, shape)

    def build(self, shape: Shape, seed: int) -> Any:
        """Return the model with the weights of the checkpoint."""
        with error_path("path"):
            return load_trained(self.path)


@kind("function", name="package.module:model")
class FunctionSpec(GivenModel):
    """A model that the user wrote: a function, a module of torch, a model of mesascope.

    Args:
        name: where it is, as `package.module:attribute`.
        interface: "xs-ys" for `forward(xs, ys)` that predicts every label of a prompt, "tokens" for `forward(input_ids)` that
            gives logits of the next symbol at every position, "context" for any other; by default by the names of its
            parameters.
    """

    name: str
    interface: Literal["context", "xs-ys", "tokens"] | None = None

    def build(self, shape: Shape, seed: int) -> Any:
        """Import it."""
        with error_path("name"):
            return named_model(self.name, self.interface)


@kind("flow", init={"kind": "diagonal", "a": 0.1, "b": 0.1})
class FlowEndSpec(GivenModel):
    """Linear attention at the end of gradient flow on the data of the specification.

    Args:
        init: initial weights.
        mask: "off-diagonal" masks gradients off the diagonals of the d × d blocks (zheng2024, Theorem 4.3).
        until: a time > 0, or "steady-state" (default).
        rho: the normalizer ρ_t.
    """

    reads = TOKENS
    init: InitField
    mask: MaskName = None
    until: Until = "steady-state"
    rho: Rho = "t-1"

    def flow(self, data: DataSpec) -> FlowSpec:
        """The flow, on these data.

        Raises:
            SpecError: the data are not diagonal unitary sequences, or no flow can be computed on them; its path begins at
                the specification of model and data.
        """
        if not isinstance(data.source, DiagonalUnitary):
            raise SpecError(
                f"ends of flows are computed for process 'diagonal-unitary', not '{data.source.kind}'; train a model on it, "
                "and give its checkpoint",
                "model",
                "kind",
            )
        solving = {name: getattr(self, name) for name in _OF_THE_FLOW}
        given = {
            "law": data.source.law,
            "dim": data.source.dim,
            "horizon": data.shape.length,
            "weights": data.build_task().weights,
            **solving,
        }
        try:
            return FlowSpec.model_validate(given)
        except ValidationError as error:
            raise _outside(first_error(error)) from None

    def end(self, data: DataSpec) -> "LinearAttention":
        """Solve the flow and return the model at its end.

        Raises:
            SpecError: the law lacks moments.
            FailedFlowError: it did not reach its end.
        """
        try:
            result = self.flow(data).run()
        except SpecError as error:
            raise _outside(error) from error
        if result.result == "interrupted":
            raise KeyboardInterrupt
        if not result.succeeded:
            raise FailedFlowError(
                f"the flow to it ended with {result.result!r} at time {result.time:.6g}; give until, an earlier time, or find "
                "its end with mesascope flow, which has more settings"
            )
        w_kq, w_pv = (tuple(map(tuple, matrix)) for matrix in (result.w_kq, result.w_pv))
        return explicit_model(w_kq, w_pv, self.rho)


_OF_THE_FLOW = tuple(one.name for one in field_help(FlowEndSpec))


def _outside(error: SpecError) -> SpecError:
    """The error of a field of a flow, with its path in the specification of model and data."""
    return error.within("model") if error.path and error.path[0] in _OF_THE_FLOW else error


IdentifiedModel: TypeAlias = Annotated[Any, *one_of("model", "given-model")]
"""A model that can be identified: one that can be trained, or one that exists already."""


def checkpoint_run(model: Any, info: ValidationInfo) -> TrainSpec | None:
    """The training run of a model that is given as a checkpoint; None for other models, and for a bad specification.

    Raises:
        SpecError: the run cannot be read.
    """
    if isinstance(model, Mapping) and model.get("kind") == CheckpointSpec.kind:
        fields = {name: value for name, value in model.items() if name != "kind"}
        try:
            model = construct(CheckpointSpec, fields, info.context)
        except SpecError:
            return None  # the check of the field reports the error
    if not isinstance(model, CheckpointSpec):
        return None
    with error_path("model"), error_path("path"):
        return run_at(model.path)


def with_data_of(run: TrainSpec, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a specification, with the data of a run where it gives none."""
    replaced = {other for name in data for other in _REPLACES.get(name, ())}
    names = [name for name in DataSpec.model_fields if getattr(run, name) is not None]
    return {**{name: getattr(run, name) for name in names if name not in replaced}, **data}


_LENGTH = ("horizon", "examples", "weights")
_REPLACES = {
    "process": ("law", "dim"),
    "task": _LENGTH,
    "horizon": ("examples", "task"),
    "examples": ("horizon", "task"),
    "weights": ("task",),
}
"""Field → fields of the run that it makes void."""
