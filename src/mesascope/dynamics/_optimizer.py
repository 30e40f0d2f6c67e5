"""Optimizers given by a name, a schedule and clipping; equal if their parameters are equal."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator

from mesascope.specs import Component, SpecError, as_table, component, integer, nonnegative, positive

if TYPE_CHECKING:  # its import takes a third of a second: only for training
    import optax

Rate: TypeAlias = Annotated[float, PlainValidator(lambda value: float(positive(value)))]
"""A number > 0 as a double, so that equal rates print the same in every checkpoint."""
Decay: TypeAlias = Annotated[float, PlainValidator(lambda value: float(nonnegative(value)))]


@component
class Optimizer(Component):
    """An optax optimizer by name.

    Args:
        method: "adam", "adamw", "lion", "sgd", or "momentum" (sgd with Nesterov momentum 0.9).
        learning_rate: the largest learning rate > 0.
        schedule: "constant", or "cosine" or "linear" decay to 0 at the last step.
        warmup: steps ≥ 0 over which the learning rate rises linearly from 0.
        clip: largest Euclidean norm of the gradient > 0; None leaves it as it is.
        weight_decay: of "adamw" and "lion", ≥ 0; must be 0 for the others.
    """

    method: Literal["adam", "adamw", "lion", "sgd", "momentum"] = "adam"
    learning_rate: Rate = 1e-3
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup: Annotated[int, BeforeValidator(integer), Field(ge=0, le=10**8)] = 0
    clip: Rate | None = None
    weight_decay: Decay = 0.0

    def __post_init__(self) -> None:
        if self.weight_decay and self.method not in ("adamw", "lion"):
            raise SpecError(f"{self.method} has none; use method 'adamw'", "weight_decay")

    def build(self, steps: int) -> optax.GradientTransformation:
        """The optax transformation of a run of `steps` steps.

        Raises:
            ValueError: when the warm-up does not end before the run.
        """
        if self.warmup and self.warmup >= steps:
            raise ValueError(f"warmup: {self.warmup} steps do not fit into a run of {steps}; take fewer")
        return self._built(0 if self.schedule == "constant" else steps)

    @cache  # noqa: B019 – equal optimizers share one transformation, and with it their compiled code
    def _built(self, steps: int) -> optax.GradientTransformation:
        """The transformation; a constant rate does not depend on the number of steps."""
        import optax

        rate = self._rate(optax, steps)
        method = {
            "adam": lambda: optax.adam(rate),
            "adamw": lambda: optax.adamw(rate, weight_decay=self.weight_decay),
            "lion": lambda: optax.lion(rate, weight_decay=self.weight_decay),
            "sgd": lambda: optax.sgd(rate),
            "momentum": lambda: optax.sgd(rate, momentum=0.9, nesterov=True),
        }[self.method]()
        return method if self.clip is None else optax.chain(optax.clip_by_global_norm(self.clip), method)

    def _rate(self, optax: Any, steps: int) -> Any:
        peak, left = self.learning_rate, steps - self.warmup
        falling = {
            "constant": lambda: optax.constant_schedule(peak),
            "cosine": lambda: optax.cosine_decay_schedule(peak, left),
            "linear": lambda: optax.linear_schedule(peak, 0.0, left),
        }[self.schedule]()
        if not self.warmup:
            return peak if self.schedule == "constant" else falling
        rising = optax.linear_schedule(0.0, peak, self.warmup)
        return optax.join_schedules([rising, falling], [self.warmup])


OptimizerField: TypeAlias = Annotated[Optimizer, *as_table(Optimizer, "method")]
"""An optimizer, its table, or the name of a method."""
