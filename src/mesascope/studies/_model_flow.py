"""Where training of any model goes on any process, and how good its end is on another process."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress

from ._flow import FlowSpec
from ._flow_settings import PATH_ENDS, FlowEnd, FlowSettings
from ._model_problem import (
    ModelProblem,
    ModelProblemSpec,
    loss_of,
    named_weights,
    names_any_model,
    test_fields,
)

if TYPE_CHECKING:
    from mesascope.dynamics import Descent, Flow


class ModelFlowResult(FlowEnd):
    """The result of `ModelFlowSpec.run`.

    Attributes:
        standard_error: of the loss; 0 for exact engines.
        test_loss: the loss of the end on the test process; None without one.
        test_standard_error: its standard error; None without a test process.
        weights: name → weights at the end, as nested lists; of complex weights `….real` and `….imag`.
    """

    standard_error: float
    test_loss: float | None
    test_standard_error: float | None
    weights: dict[str, Any]


class ModelFlowSpec(FlowSettings, ModelProblemSpec):
    """Gradient flow θ' = −∇L, or gradient descent θ ← θ − lr ∇L, of any model on any process."""

    start, scaled_by = "model", "process"

    def run(self, progress: Callable[[Progress], None] | None = None) -> ModelFlowResult:
        """Solve the flow or take the steps of the descent.

        Args:
            progress: called now and then; a KeyboardInterrupt ends the run, with the result until then.

        Raises:
            SpecError: numbers do not fit, or the engine cannot treat the model on these data.
            ValueError: 64-bit mode is off.
        """
        return self.follow(self.build(), progress)[0]

    def follow(
        self,
        problem: ModelProblem,
        progress: Callable[[Progress], None] | None = None,
        *,
        saves: int = PATH_ENDS,
    ) -> "tuple[ModelFlowResult, Flow[Any] | Descent[Any]]":
        """As `run`, for the problem that was built; also return the path, with at most `saves` points."""
        model, process, task, engine, _ = problem
        path = self.solve(model, process, task, engine=engine, saves=saves, progress=progress)
        here = loss_of(problem.objective, path.model)
        return ModelFlowResult(
            **self.end(path, float(here.value)),
            **test_fields(problem, path.model),
            standard_error=float(here.standard_error),
            weights={name: values.tolist() for name, values in named_weights(path.model).items()},
        ), path


def flow_spec(data: Any) -> type[FlowSpec] | type[ModelFlowSpec]:
    """The class of the specification of a flow in a file: of any model if it names one."""
    return ModelFlowSpec if names_any_model(data) else FlowSpec
