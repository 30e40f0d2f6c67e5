"""How a flow or a descent is solved, and how it ended: what flows of linear attention and of any model share."""

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, model_validator

from mesascope.core import Progress
from mesascope.specs import Count, Number, Positive, Spec, SpecError, in_file_form, positive, show

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow, Mask
    from mesascope.objectives import Engine

PATH_ENDS = 2
"""Points of a path if only its ends are needed."""
_RTOL, _COARSE_RTOL = 1e-11, 1e-7
_FLOW_ONLY = ("until", "tolerance", "max_steps", "solver")
_DESCENT_ONLY = ("lr", "steps")
_NOT_FINITE = "the loss or its gradient is not finite at the start; take smaller weights in {start}, or smaller data in {data}"
_DIVERGED = {
    "flow": "the weights or the loss stopped being finite, or the step size vanished; take smaller weights in {start}, or "
    "solver = 'kvaerno5'",
    "descent": "the weights or the loss stopped being finite; take a smaller lr, or smaller weights in {start}",
}
"""Method → what to do, by fields of a specification."""


def _until(value: Any) -> Number | str:
    if isinstance(value, str) and value.strip()[:1].isalpha():
        if value == "steady-state":
            return value
        raise SpecError(f"{show(value)} is neither a time > 0 nor 'steady-state'")
    return positive(value)


def _tolerance(value: Any) -> Number:
    given = positive(value)
    if not _RTOL <= given < 1:
        raise SpecError(f"must lie between {_RTOL:g} (the solver's own error) and 1, got {value}")
    return given


MaskName: TypeAlias = Literal["off-diagonal"] | None
"""The mask of the gradients of a flow."""
Until: TypeAlias = Annotated[Number | str, PlainValidator(_until), PlainSerializer(in_file_form)]
Tolerance: TypeAlias = Annotated[Number, PlainValidator(_tolerance), PlainSerializer(in_file_form)]


class FlowEnd(BaseModel):
    """How a flow or a descent ended.

    Attributes:
        loss: the loss at the end.
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        converged: whether the gradient fell below the tolerance.
        time: flow time at the end; for descent, steps × lr.
        steps: steps of the solver, or of the descent.
        result: "converged", "finished" (the time or the steps asked for), "diverged", "step limit" or
            "interrupted".
        message: the meaning of the result, and the remedy if it failed.
    """

    model_config = ConfigDict(frozen=True)

    loss: float
    gradient_norm: float
    converged: bool
    time: float
    steps: int
    result: str
    message: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended in a steady state, or at the time or number of steps asked for."""
        return self.result in ("converged", "finished")


class FlowSettings(Spec):
    """How θ' = −∇L, or gradient descent θ ← θ − lr ∇L, is solved.

    Attributes:
        method: "flow" (default) or "descent".
        until: end of a flow; a time > 0, or "steady-state" (default).
        tolerance: tolerance of the steady state of a flow; at least 1e-11, default 1e-10.
        max_steps: maximum steps of the solver of a flow; default 100 000.
        solver: solver of a flow; "tsit5" (explicit, default), "kvaerno5" (implicit, for slow approaches of few weights), or
            "rodas4" (implicit with a local error of 1e-7, for flows that rest at saddles, of up to some hundred weights).
        lr: descent: learning rate > 0, for the loss summed over context lengths or numbers of examples.
        steps: descent: number of steps.
    """

    start: ClassVar[str]  # the field of the initial weights
    scaled_by: ClassVar[str]  # the field of the data

    method: Literal["flow", "descent"] = "flow"
    until: Until | None = None
    tolerance: Tolerance | None = None
    max_steps: Count | None = None
    solver: Literal["tsit5", "kvaerno5", "rodas4"] | None = None
    lr: Positive | None = None
    steps: Count | None = None

    @model_validator(mode="after")
    def _fields_fit_the_method(self) -> Self:
        foreign, other = (_DESCENT_ONLY, "descent") if self.method == "flow" else (_FLOW_ONLY, "flow")
        for name in foreign:
            if getattr(self, name) is not None:
                raise SpecError(
                    f"belongs to method = '{other}', but method is '{self.method}'; leave it out or change method",
                    name,
                )
        if self.method == "descent":
            for name in _DESCENT_ONLY:
                if getattr(self, name) is None:
                    raise SpecError("missing; method = 'descent' needs lr and steps", name)
        return self

    @property
    def time(self) -> float | None:
        """The flow time at the end; None for a flow to a steady state, or a descent."""
        return None if self.until is None or isinstance(self.until, str) else float(self.until)

    def solving(self, saves: int) -> dict[str, Any]:
        """Arguments of `gradient_flow` that say how it is solved, but not where it ends."""
        import diffrax

        from mesascope.dynamics import Rodas4

        solvers = {"kvaerno5": diffrax.Kvaerno5, "rodas4": Rodas4}
        return {
            "solver": solvers[self.solver]() if self.solver in solvers else None,
            "rtol": _COARSE_RTOL if self.solver == "rodas4" else _RTOL,
            "max_steps": self.max_steps or 100_000,
            "saves": saves,
        }

    def solve(
        self,
        model: Any,
        process: Any,
        task: Any,
        *,
        engine: "Engine | None",
        mask: "Mask | None" = None,
        saves: int = PATH_ENDS,
        progress: Callable[[Progress], None] | None = None,
    ) -> "Flow[Any] | Descent[Any]":
        """Solve the flow, or take the steps of the descent; `saves` is the number of points of the path, at most."""
        from mesascope.dynamics import descend, gradient_flow

        if self.method == "descent":
            return descend(
                model,
                process,
                task,
                engine=engine,
                mask=mask,
                learning_rate=float(self.lr or 0),
                steps=self.steps or 0,
                saves=100 if progress else saves,
                progress=progress,
            )
        until = "steady-state" if self.until is None else self.until
        return gradient_flow(
            model,
            process,
            task,
            engine=engine,
            mask=mask,
            **self.solving(saves),
            until=until if isinstance(until, str) else float(until),
            tolerance=1e-10 if self.tolerance is None else float(self.tolerance),
            progress=progress,
        )

    def end(self, path: "Flow[Any] | Descent[Any]", loss: float) -> dict[str, Any]:
        """The fields of `FlowEnd` of a path with this loss at its end."""
        from mesascope.dynamics import Descent

        if isinstance(path, Descent):
            steps = int(path.steps[-1])
            time = steps * float(self.lr or 0)
        else:
            steps, time = path.stats["steps"], path.time
        norm, message = float(path.gradient_norm), path.result.message
        if path.result.value == "diverged":
            message = _DIVERGED[self.method] if isfinite(norm) or steps else _NOT_FINITE
            message = message.format(start=self.start, data=self.scaled_by)
        return {
            "loss": loss,
            "gradient_norm": norm,
            "converged": path.converged,
            "time": time,
            "steps": steps,
            "result": path.result.value,
            "message": message,
        }
