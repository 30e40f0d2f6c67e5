"""The loss of any model on any process, and its gradient."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict

from ._loss import LossSpec, loss_and_gradient
from ._model_problem import ModelProblemSpec, named_weights, names_any_model, test_fields


class ModelLossResult(BaseModel):
    """The result of `ModelLossSpec.run`.

    Attributes:
        loss: of the model; infinite or NaN if it exceeds double precision.
        standard_error: of the loss; 0 for exact engines.
        test_loss: the loss on the test process; None without one.
        test_standard_error: its standard error; None without a test process.
        gradient_norm: ‖∇L‖₂ in all weights.
        gradient: name of weights → the gradient in them, as nested lists.
    """

    model_config = ConfigDict(frozen=True)

    loss: float
    standard_error: float
    test_loss: float | None
    test_standard_error: float | None
    gradient_norm: float
    gradient: dict[str, Any]

    @property
    def finite(self) -> bool:
        """Whether loss and gradient fit double precision."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class ModelLossSpec(ModelProblemSpec):
    """The loss of a model on a process, exact or sampled."""

    def run(self) -> ModelLossResult:
        """Compute the loss and its gradient.

        Raises:
            SpecError: numbers do not fit, or the engine cannot treat the model on these data.
            ValueError: 64-bit mode is off.
        """
        import numpy as np

        problem = self.build()
        loss, standard_error, gradient = loss_and_gradient(problem.objective, problem.model)
        slopes = named_weights(gradient)
        return ModelLossResult(
            **test_fields(problem, problem.model),
            loss=loss,
            standard_error=standard_error,
            gradient_norm=float(np.linalg.norm([np.linalg.norm(one) for one in slopes.values()])),
            gradient={name: one.tolist() for name, one in slopes.items()},
        )


def loss_spec(data: Any) -> type[LossSpec] | type[ModelLossSpec]:
    """The class of the specification of a loss in a file: of any model if it names one."""
    return ModelLossSpec if names_any_model(data) else LossSpec
