"""Specifications of optimizers; their fields are the arguments of `Optimizer`."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from mesascope.specs import Nonnegative, Positive, Spec

if TYPE_CHECKING:
    from mesascope.dynamics import Optimizer


class OptimizerSpec(Spec):
    """An optimizer by name.

    Attributes:
        method: "adam", "adamw", "lion", "sgd", or "momentum".
        learning_rate: the largest learning rate > 0.
        schedule: "constant", or "cosine" or "linear" decay to 0 at the last step.
        warmup: steps over which the learning rate rises from 0.
        clip: largest norm > 0 of the gradient, if it is clipped.
        weight_decay: of "adamw" and "lion".
    """

    method: Literal["adam", "adamw", "lion", "sgd", "momentum"] = "adam"
    learning_rate: Positive = 1e-3
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup: Annotated[int, Field(strict=True, ge=0, le=10**8)] = 0
    clip: Positive | None = None
    weight_decay: Nonnegative = 0.0

    def build(self, steps: int) -> "Optimizer":
        """Return the optimizer of a run of so many steps.

        Raises:
            ValueError: a weight decay where there is none, or a warm-up that does not fit into the run.
        """
        from mesascope.dynamics import Optimizer

        clip = None if self.clip is None else float(self.clip)
        rate, decay = float(self.learning_rate), float(self.weight_decay)
        optimizer = Optimizer(self.method, rate, self.schedule, self.warmup, clip, decay)
        optimizer.build(steps)
        return optimizer


def _named(value: Any) -> Any:
    return {"method": value} if isinstance(value, str) else value


OptimizerSpecOrName: TypeAlias = Annotated[OptimizerSpec, BeforeValidator(_named)]
"""An optimizer; a string stands for the method with all defaults."""
