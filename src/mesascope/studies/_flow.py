"""Where training of one layer of linear attention goes from given initial weights, with the limit that theory names."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress
from mesascope.specs import Spec, error_path

from ._flow_settings import PATH_ENDS, FlowEnd, FlowSettings, MaskName
from ._problem import Problem, StartSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow

_DIFFERENT = {"init", "law", "until"}  # fields that may differ between flows that are solved together


class FlowResult(FlowEnd):
    """The result of `FlowSpec.run`.

    Attributes:
        w_kq, w_pv: weights at the end, shapes (2d, 2d) and (d, 2d).
        product: a_j b_j, the products of the two diagonals, shape (d,).
        limit_product: their limit by theory; None if there is none.
        limit_reason: the theorem, or why there is no limit.
    """

    w_kq: list[list[float]]
    w_pv: list[list[float]]
    product: list[float]
    limit_product: float | None
    limit_reason: str


class FlowSpec(FlowSettings, StartSpec):
    """Gradient flow θ' = −∇L, or gradient descent θ ← θ − lr ∇L, of one layer of linear attention.

    Attributes:
        mask: gradient mask; "off-diagonal" sets gradients off the diagonals of the d × d blocks to 0 (zheng2024, Theorem 4.3).
    """

    start, scaled_by = "init", "law"

    mask: MaskName = None

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
        self, progress: Callable[[Progress], None] | None = None, *, saves: int = PATH_ENDS
    ) -> "tuple[FlowResult, Flow[Any] | Descent[Any]]":
        """As `run`; also return the path, with at most `saves` points.

        Raises:
            SpecError, ValueError: as for `run`.
        """
        problem = self.checked()
        model, process, task, engine = problem
        path = self.solve(model, process, task, engine=engine, mask=self.mask, saves=saves, progress=progress)
        return self.flow_result(problem, path), path

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

    def flow_result(self, problem: Problem, path: "Flow[Any] | Descent[Any]") -> FlowResult:
        """The result of a path that was solved."""
        limit, reason = theory_limit(problem, self.mask, drawn=self.init.kind == "gaussian")
        return FlowResult(
            **self.end(path, _loss_at_the_end(path)),
            w_kq=path.model.w_kq.tolist(),
            w_pv=path.model.w_pv.tolist(),
            product=path.model.products().tolist(),
            limit_product=limit,
            limit_reason=reason,
        )


def _loss_at_the_end(path: "Flow[Any] | Descent[Any]") -> float:
    import jax
    import numpy as np

    from mesascope.dynamics import Descent
    from mesascope.objectives import losses

    if isinstance(path, Descent):
        return float(path.loss[-1])
    # of the two ends only: the same last digit for any number of points
    ends = jax.tree.map(lambda weight: np.asarray(weight)[[0, -1]], path.trajectory)
    return float(losses(path.objective, ends)[-1])


def theory_limit(problem: Problem, mask: MaskName, *, drawn: bool) -> tuple[float | None, str]:
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


def _source(problem: Problem, mask: MaskName) -> str:
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
    shared = {"engine": problems[0].engine, "mask": specs[0].mask, **specs[0].solving(saves)}
    flows = gradient_flows(models, processes, tasks, times, **shared)
    return [
        (spec.flow_result(problem, flow), flow)
        for spec, problem, flow in zip(specs, problems, flows, strict=True)
    ]
