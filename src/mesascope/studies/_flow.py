"""Where training goes from given initial weights: gradient flow, or gradient descent."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, model_validator

from mesascope.core import Progress
from mesascope.models import InitField
from mesascope.specs import Number, Positive, SpecError, error_path, positive, show, written

from ._limit import theory_limit
from ._problem import Problem, ProblemSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow

_ENDS = 2  # points of a path of which nothing else is asked
_RTOL = 1e-11
_FLOW_ONLY = ("until", "tolerance", "max_steps", "solver")
_DESCENT_ONLY = ("lr", "steps")


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


Until: TypeAlias = Annotated[Number | str, PlainValidator(_until), PlainSerializer(written)]
Tolerance: TypeAlias = Annotated[Number, PlainValidator(_tolerance), PlainSerializer(written)]


class FlowResult(BaseModel):
    """What `FlowSpec.run` gives.

    Attributes:
        w_kq, w_pv: weights at the end, shapes (2d, 2d) and (d, 2d).
        loss: the loss there.
        product: a_j b_j, the products of the two diagonals, shape (d,).
        limit_product: where theory says that they end; None where it says nothing.
        limit_reason: what the limit rests on, or why there is none.
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        converged: whether the gradient fell below the tolerance.
        time: flow time at the end; for descent, steps × lr.
        steps: steps of the solver, or of the descent.
        result: "converged", "finished" (the time or the steps asked for), "diverged", "step limit" or
            "interrupted".
        message: what that means, and the remedy where one is needed.
    """

    model_config = ConfigDict(frozen=True)

    w_kq: list[list[float]]
    w_pv: list[list[float]]
    loss: float
    product: list[float]
    limit_product: float | None
    limit_reason: str
    gradient_norm: float
    converged: bool
    time: float
    steps: int
    result: str
    message: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended as asked: at rest, or at the time or number of steps asked for."""
        return self.result in ("converged", "finished")


class FlowSpec(ProblemSpec):
    """Gradient flow θ' = −∇L, or gradient descent θ ← θ − lr ∇L, from given initial weights.

    Attributes:
        init: initial weights.
        mask: gradient mask; "off-diagonal" sets gradients off the diagonals of the d × d blocks to 0 (zheng2024, Theorem 4.3).
        method: "flow" (default) or "descent".
        until: end of a flow; a time > 0, or "steady-state" (default).
        tolerance: tolerance of the steady state of a flow; at least 1e-11, default 1e-10.
        max_steps: maximum steps of the solver of a flow; default 100 000.
        solver: solver of a flow; "tsit5" (explicit, default) or "kvaerno5" (implicit, for slow approaches at small dim).
        lr: descent: learning rate > 0, for the loss summed over context lengths.
        steps: descent: number of steps.
    """

    init: InitField
    mask: Literal["off-diagonal"] | None = None
    method: Literal["flow", "descent"] = "flow"
    until: Until | None = None
    tolerance: Tolerance | None = None
    max_steps: Annotated[int, Field(strict=True, ge=1, le=10**8)] | None = None
    solver: Literal["tsit5", "kvaerno5"] | None = None
    lr: Positive | None = None
    steps: Annotated[int, Field(strict=True, ge=1, le=10**8)] | None = None

    @model_validator(mode="after")
    def _fields_fit_the_method(self) -> Self:
        self.init.check(self.dim)
        foreign, other = (_DESCENT_ONLY, "descent") if self.method == "flow" else (_FLOW_ONLY, "flow")
        for name in foreign:
            if getattr(self, name) is not None:
                raise SpecError(
                    f"belongs to method = '{other}', but method is '{self.method}'; drop it or change method",
                    name,
                )
        if self.method == "descent":
            for name in _DESCENT_ONLY:
                if getattr(self, name) is None:
                    raise SpecError("missing; method = 'descent' needs lr and steps", name)
        return self

    def build(self) -> Problem:
        """Return initial model, process, task and engine.

        Raises:
            SpecError: the law is impossible or lacks moments, or does not fit the dimension.
        """
        process, task = self.data()
        with error_path("init"):
            model = self.init.build(self.dim, self.rho)
        return Problem(model, process, task, self.engine)

    def run(self, progress: Callable[[Progress], None] | None = None) -> FlowResult:
        """Solve the flow or take the steps of the descent.

        Args:
            progress: called now and then; a KeyboardInterrupt ends the run and keeps what was computed.

        Raises:
            SpecError: as for `build`, or the engine cannot treat the problem.
            ValueError: 64-bit mode is off (exact engines).
        """
        return self.follow(progress)[0]

    def follow(
        self, progress: Callable[[Progress], None] | None = None, *, saves: int = _ENDS
    ) -> "tuple[FlowResult, Flow[Any] | Descent[Any]]":
        """As `run`, which keeps the end only: also the path, of which at most `saves` points are kept.

        Raises:
            SpecError, ValueError: as for `run`.
        """
        problem = self.checked()
        if self.method == "descent":
            return self._descend(problem, progress, saves)
        from mesascope.dynamics import gradient_flow

        model, process, task, _ = problem
        until = "steady-state" if self.until is None else self.until
        flow = gradient_flow(
            model,
            process,
            task,
            **self.settings(problem, saves),
            until=until if isinstance(until, str) else float(until),
            tolerance=1e-10 if self.tolerance is None else float(self.tolerance),
            progress=progress,
        )
        return self.flow_result(problem, flow), flow

    @property
    def time(self) -> float | None:
        """The flow time that is asked for; None for a flow to rest, or a descent."""
        return None if self.until is None or isinstance(self.until, str) else float(self.until)

    def checked(self) -> Problem:
        """As `build`; also whether the engine can treat it.

        Raises:
            SpecError: as for `run`.
        """
        problem = self.build()
        model, process, task, engine = problem
        with error_path("engine"):
            engine.objective(process, task, model.normalizer)
        return problem

    def settings(self, problem: Problem, saves: int) -> dict[str, Any]:
        """What `gradient_flow` is told beside the problem, wherever the flow goes."""
        import diffrax

        return {
            "engine": problem.engine,
            "mask": self.mask,
            "solver": diffrax.Kvaerno5() if self.solver == "kvaerno5" else None,
            "rtol": _RTOL,
            "max_steps": self.max_steps or 100_000,
            "saves": saves,
        }

    def flow_result(self, problem: Problem, flow: "Flow[Any]") -> FlowResult:
        """What a flow that was solved gives."""
        import jax
        import numpy as np

        from mesascope.objectives import losses

        # of the two ends, however many points were kept: one program, and one last digit
        ends = jax.tree.map(lambda weight: np.asarray(weight)[[0, -1]], flow.trajectory)
        loss = float(losses(flow.objective, ends)[-1])
        return self._result(problem, flow, loss, flow.time, flow.stats["steps"])

    def _descend(
        self, problem: Problem, progress: Callable[[Progress], None] | None, saves: int
    ) -> "tuple[FlowResult, Descent[Any]]":
        from mesascope.dynamics import descend

        model, process, task, engine = problem
        rate, steps = float(self.lr or 0), self.steps or 0
        descent = descend(
            model,
            process,
            task,
            learning_rate=rate,
            steps=steps,
            engine=engine,
            mask=self.mask,
            saves=100 if progress else saves,
            progress=progress,
        )
        taken = int(descent.steps[-1])
        return self._result(problem, descent, float(descent.loss[-1]), taken * rate, taken), descent

    def _result(
        self, problem: Problem, end: "Flow[Any] | Descent[Any]", loss: float, time: float, steps: int
    ) -> FlowResult:
        limit, reason = theory_limit(problem, self.mask, drawn=self.init.kind == "gaussian")
        return FlowResult(
            w_kq=end.model.w_kq.tolist(),
            w_pv=end.model.w_pv.tolist(),
            loss=loss,
            product=end.model.products().tolist(),
            limit_product=limit,
            limit_reason=reason,
            gradient_norm=float(end.gradient_norm),
            converged=end.converged,
            time=time,
            steps=steps,
            result=end.result.value,
            message=end.result.message,
        )
