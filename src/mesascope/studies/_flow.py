"""Where training goes from given initial weights: gradient flow, or gradient descent."""

import json
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, model_validator

from mesascope.core import Progress
from mesascope.models import InitField
from mesascope.specs import Count, Number, Positive, Spec, SpecError, error_path, in_file_form, positive, show

from ._problem import Problem, ProblemSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow

_ENDS = 2  # points of a path if only its ends are needed
_RTOL = 1e-11
_DIFFERENT = {"init", "law", "until"}  # fields that may differ between flows that are solved together
_FLOW_ONLY = ("until", "tolerance", "max_steps", "solver")
_DESCENT_ONLY = ("lr", "steps")
_NOT_FINITE = "the loss or its gradient is not finite at the start; take smaller weights in init, or a smaller scale of law"
_DIVERGED = {
    "flow": "the weights or the loss stopped being finite, or the step size vanished; take smaller weights in init, or "
    "solver = 'kvaerno5'",
    "descent": "the weights or the loss stopped being finite; take a smaller lr, or smaller weights in init",
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


Until: TypeAlias = Annotated[Number | str, PlainValidator(_until), PlainSerializer(in_file_form)]
Tolerance: TypeAlias = Annotated[Number, PlainValidator(_tolerance), PlainSerializer(in_file_form)]


class FlowResult(BaseModel):
    """The result of `FlowSpec.run`.

    Attributes:
        w_kq, w_pv: weights at the end, shapes (2d, 2d) and (d, 2d).
        loss: the loss there.
        product: a_j b_j, the products of the two diagonals, shape (d,).
        limit_product: their limit by theory; None if there is none.
        limit_reason: the theorem, or why there is no limit.
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        converged: whether the gradient fell below the tolerance.
        time: flow time at the end; for descent, steps × lr.
        steps: steps of the solver, or of the descent.
        result: "converged", "finished" (the time or the steps asked for), "diverged", "step limit" or
            "interrupted".
        message: the meaning of the result, and the remedy if it failed.
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
        """Whether it ended in a steady state, or at the time or number of steps asked for."""
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
    max_steps: Count | None = None
    solver: Literal["tsit5", "kvaerno5"] | None = None
    lr: Positive | None = None
    steps: Count | None = None

    @model_validator(mode="after")
    def _fields_fit_the_method(self) -> Self:
        self.init.check(self.dim)
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
            progress: called now and then; a KeyboardInterrupt ends the run, with the result until then.

        Raises:
            SpecError: as for `build`, or the engine cannot treat the problem.
            ValueError: 64-bit mode is off (exact engines).
        """
        return self.follow(progress)[0]

    def follow(
        self, progress: Callable[[Progress], None] | None = None, *, saves: int = _ENDS
    ) -> "tuple[FlowResult, Flow[Any] | Descent[Any]]":
        """As `run`; also return the path, with at most `saves` points.

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
        """The flow time at the end; None for a flow to a steady state, or a descent."""
        return None if self.until is None or isinstance(self.until, str) else float(self.until)

    def checked(self) -> Problem:
        """As `build`; also refuse a problem that the engine cannot treat.

        Raises:
            SpecError: as for `run`.
        """
        problem = self.build()
        model, process, task, engine = problem
        with error_path("engine"):
            engine.objective(process, task, model.normalizer)
        return problem

    def settings(self, problem: Problem, saves: int) -> dict[str, Any]:
        """The arguments of `gradient_flow` beside the problem and the end of the flow."""
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
        """The result of a flow that was solved."""
        import jax
        import numpy as np

        from mesascope.objectives import losses

        # of the two ends only: one program, and the same last digit for any number of points
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
        message = end.result.message
        if end.result.value == "diverged":
            message = _DIVERGED[self.method] if isfinite(float(end.gradient_norm)) or steps else _NOT_FINITE
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
            message=message,
        )


def theory_limit(
    problem: Problem, mask: Literal["off-diagonal"] | None, *, drawn: bool
) -> tuple[float | None, str]:
    """Return the limit of every a_j b_j under gradient flow that theory names, or None, and the reason in one line.

    From diagonal starts a I, b I: Theorem 4.1 of zheng2024, for every law whose flow stays diagonal; with the
    mask Theorem 4.3; what they generalize to for other normalizers and weights; 0 if a = −b. From starts drawn
    at random without a mask: the same limit, for laws that satisfy Assumption 4.1; that the flow ends there is
    an observation, not a theorem. Other starts: None.

    Args:
        problem: initial model, process and task.
        mask: "off-diagonal" when gradients off the diagonals are masked.
        drawn: whether the initial weights are drawn at random.
    """
    from mesascope.theory.zheng2024 import limit_product, satisfies_assumption_41

    model, process, task, _ = problem
    start = _diagonal(problem)
    reason = _source(problem, mask)
    try:
        if start is None:
            if mask is not None or not drawn:
                return None, "theory speaks about diagonal starts a I, b I"
            satisfies_assumption_41(process.law, process.dim).require("Assumption 4.1")
            reason = f"{reason}; observed, not proved, for random starts"
        limit = float(limit_product(process, task, mask=mask, normalizer=str(model.normalizer)))
    except ValueError as error:
        return None, " ".join(str(error).split())
    if start is not None and start[0] == -start[1]:
        return 0.0, "from a = −b exactly, the flow ends at the saddle at zero; rounding may lead away from it"
    return limit, reason


def _source(problem: Problem, mask: Literal["off-diagonal"] | None) -> str:
    """The theorem, and its generalization: it is stated for ρ_t = t − 1 and the weights 1."""
    theorem = f"zheng2024, Theorem {'4.1' if mask is None else '4.3'}"
    others = []
    if problem.model.normalizer != "t-1":
        others.append(f"ρ_t = {problem.model.normalizer}")
    if problem.task.weights is not None:
        others.append("these weights")
    return f"{theorem} generalized to {' and '.join(others)}" if others else theorem


def _diagonal(problem: Problem) -> tuple[float, float] | None:
    """The a and b of a model that is exactly a I, b I and zero elsewhere."""
    import numpy as np

    from mesascope.models import LinearAttention

    model, dim = problem.model, problem.process.dim
    w_kq, w_pv = np.asarray(model.w_kq), np.asarray(model.w_pv)  # jax would compile for every shape
    a, b = float(w_kq[dim, 0]), float(w_pv[0, 0])
    form = LinearAttention.diagonal(dim, a, b)
    same = np.array_equal(form.w_kq, w_kq) and np.array_equal(form.w_pv, w_pv)
    return (a, b) if same else None


def program_of(spec: Spec) -> str | None:
    """Return a text that is equal for flows to given times that one compiled program can solve together.

    It holds everything but the start, the time and the numbers of the law. None for descents, and for flows to a steady state,
    which would all wait for the slowest.
    """
    if not isinstance(spec, FlowSpec) or spec.time is None:
        return None
    fields = spec.model_dump(mode="json")
    shared = {name: value for name, value in fields.items() if name not in _DIFFERENT}
    return json.dumps([shared, _form(fields["law"])], sort_keys=True)


def _form(value: Any) -> Any:
    """A law without its numbers."""
    match value:
        case dict():
            return {name: _form(one) for name, one in value.items()}
        case list() | tuple():
            return [_form(one) for one in value]
        case str() if not _is_number(value):
            return value
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.strip()[:1].isdigit() or text.strip()[:1] in "+-."


def follow_together(specs: Sequence[FlowSpec], *, saves: int) -> "list[tuple[FlowResult, Flow[Any]]]":
    """As `FlowSpec.follow` of each; `program_of` must be equal for all of them.

    Raises:
        SpecError, ValueError: one of them cannot be run, or not with the others.
    """
    from mesascope.dynamics import gradient_flows

    problems = [spec.checked() for spec in specs]
    models, processes, tasks, _ = zip(*problems, strict=True)
    times = [spec.time or 0.0 for spec in specs]
    flows = gradient_flows(models, processes, tasks, times, **specs[0].settings(problems[0], saves))
    return [
        (spec.flow_result(problem, flow), flow)
        for spec, problem, flow in zip(specs, problems, flows, strict=True)
    ]
