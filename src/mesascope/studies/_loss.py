"""The population loss of given weights, and its gradient."""

import math
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from mesascope.models import check_shapes, explicit_model
from mesascope.specs import Matrix, error_path

from ._problem import Problem, ProblemSpec


class LossResult(BaseModel):
    """The result of `LossSpec.run`.

    Attributes:
        loss: L = Σ_t w_t ½ E‖ŷ_t − x_{t+1}‖²; infinite or NaN if it exceeds double precision.
        standard_error: of the loss; 0 for exact engines.
        grad_w_kq: ∂L/∂W^KQ, shape (2d, 2d).
        grad_w_pv: ∂L/∂W^PV, shape (d, 2d).
    """

    model_config = ConfigDict(frozen=True)

    loss: float
    standard_error: float
    grad_w_kq: list[list[float]]
    grad_w_pv: list[list[float]]

    @property
    def finite(self) -> bool:
        """Whether loss and gradient fit double precision."""
        rows = (*self.grad_w_kq, *self.grad_w_pv)
        return math.isfinite(self.loss) and all(math.isfinite(x) for row in rows for x in row)


class LossSpec(ProblemSpec):
    """A population loss at explicit weights.

    Attributes:
        w_kq: W^KQ, shape (2d, 2d).
        w_pv: W^PV, shape (d, 2d): the rows that reach the prediction.
    """

    w_kq: Matrix
    w_pv: Matrix

    @model_validator(mode="after")
    def _shapes_fit(self) -> Self:
        check_shapes(self.w_kq, self.w_pv, self.dim)
        return self

    def build(self) -> Problem:
        """Return model, process, task and engine.

        Raises:
            SpecError: the law is impossible or lacks moments, or does not fit the dimension.
        """
        process, task = self.data()
        return Problem(explicit_model(self.w_kq, self.w_pv, self.rho), process, task, self.engine)

    def run(self) -> LossResult:
        """Compute the loss and its gradient.

        Raises:
            SpecError: as for `build`, or the engine cannot treat the problem.
            ValueError: 64-bit mode is off (exact engines).
        """
        model, process, task, engine = self.build()
        with error_path("engine"):
            objective = engine.objective(process, task, model.normalizer)
        loss, standard_error, gradient = loss_and_gradient(objective, model)
        return LossResult(
            loss=loss,
            standard_error=standard_error,
            grad_w_kq=gradient.w_kq.tolist(),
            grad_w_pv=gradient.w_pv.tolist(),
        )


def loss_and_gradient(objective: Any, model: Any) -> tuple[float, float, Any]:
    """The loss of a model, its standard error, and its gradient in the form of the model."""
    import equinox as eqx

    @eqx.filter_jit
    def computed(objective: Any, model: Any) -> Any:
        def loss(model: Any) -> Any:
            estimate = objective(model)
            return estimate.value, estimate.standard_error

        return eqx.filter_value_and_grad(loss, has_aux=True)(model)

    (value, error), gradient = computed(objective, model)
    return float(value), float(error), gradient
