"""Optimizers that can be written down: by name, with schedule and clipping, equal when their parameters are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from mesascope.core import finite_nonnegative, finite_positive, integer_at_least

if TYPE_CHECKING:  # a third of a second to import: only training pays for it
    import optax

METHODS = ("adam", "adamw", "lion", "sgd", "momentum")
SCHEDULES = ("constant", "cosine", "linear")


@dataclass(frozen=True)
class Optimizer:
    """An optax optimizer by name.

    Attributes:
        method: "adam", "adamw", "lion", "sgd", or "momentum" (sgd with Nesterov momentum 0.9).
        learning_rate: the largest learning rate > 0.
        schedule: "constant", or "cosine" or "linear" decay to 0 at the last step.
        warmup: steps ≥ 0 over which the learning rate rises linearly from 0.
        clip: largest Euclidean norm of the gradient > 0; None leaves it as it is.
        weight_decay: of "adamw" and "lion", ≥ 0; must be 0 for the others.

    Raises:
        ValueError, TypeError: for an unknown name, or a number out of its range.
    """

    method: str = "adam"
    learning_rate: float = 1e-3
    schedule: str = "constant"
    warmup: int = 0
    clip: float | None = None
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for name, value, known in (("method", self.method, METHODS), ("schedule", self.schedule, SCHEDULES)):
            if value not in known:
                raise ValueError(f"{name}: {value!r} is unknown; use one of {', '.join(known)}")
        # plain numbers, so that what is written the same way is equal, and prints the same in every checkpoint
        self._set("learning_rate", float(finite_positive("learning_rate", self.learning_rate)))
        self._set("warmup", integer_at_least("warmup", self.warmup, 0))
        if self.clip is not None:
            self._set("clip", float(finite_positive("clip", self.clip)))
        self._set("weight_decay", float(finite_nonnegative("weight_decay", self.weight_decay)))
        if self.weight_decay and self.method not in ("adamw", "lion"):
            raise ValueError(f"weight_decay: {self.method} has none; use method 'adamw'")

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

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
