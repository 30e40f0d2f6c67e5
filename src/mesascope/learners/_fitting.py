"""The hyperparameters of learners that are fitted to models, and the decorator that declares learners."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.specs import register, show

_T = TypeVar("_T", bound=type)
_SMALLEST = 1e-9  # a fit starts at no smaller number that may not be 0


@dataclass(frozen=True)
class Scalar:
    """A real hyperparameter and the range of its initial values in fits.

    Attributes:
        name: the field of the learner.
        low, high: the ends of the grid of initial values, in units of the typical eigenvalue to the given `power`.
        power: −1 for step sizes, 1 for penalties, 0 for dimensionless numbers.
        bounded: whether it is in (0, 1); otherwise it is any positive number.
    """

    name: str
    low: float
    high: float
    power: int = 0
    bounded: bool = False

    def starts(self, count: int, eigenvalue: float) -> np.ndarray:
        """Return `count` initial values, evenly spaced in the coordinate of the fit."""
        ends = np.array([self.low, self.high])
        low, high = np.log(ends / (1 - ends)) if self.bounded else np.log(ends * eigenvalue**self.power)
        return np.linspace(low, high, count)

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value, or that of the nearest value at which a fit can start."""
        if self.bounded:
            value = min(max(value, self.low), self.high)
            return math.log(value / (1 - value))
        return math.log(max(value, self.low if self.power == 0 else _SMALLEST))

    def value(self, coordinate: Any) -> Any:
        """Return the hyperparameter at a coordinate: its exponential, or its logistic function if bounded."""
        return jax.nn.sigmoid(coordinate) if self.bounded else jnp.exp(coordinate)


STEP_SIZE = Scalar("step_size", 1e-2, 4.0, power=-1)
"""A step size, found in units of the inverse typical eigenvalue."""
MOMENTUM = Scalar("momentum", 0.05, 0.95, bounded=True)
"""A momentum between 0 and 1."""
PENALTY = Scalar("penalty", 1e-3, 1e3, power=1)
"""A ridge penalty, found in units of the typical eigenvalue."""


FAMILIES = {
    "fixed": "not learning",
    "averaging": "averaging-like",
    "descent": "gradient-descent-like",
    "least-squares": "least-squares-like",
    "bayes": "Bayes-like",
    "other": "like a learner of your own",
}
"""The families of learners, in the order in which figures show them, and what a model close to one is called."""


@dataclass(frozen=True)
class Fitting:
    """How a learner is fitted to a model.

    Attributes:
        scalars: its real hyperparameters, at most three.
        integer: the name of an integer hyperparameter, or None.
        largest: the largest integer that is tried.
        fixed: other hyperparameters, which are not fitted.
        of_process: hyperparameters that are attributes of the process of the data, as pairs (hyperparameter, attribute): models
            are compared with the learner on processes that have them all.
        of_process_if_any: the same for hyperparameters that have another value where the process lacks the attribute.
        tasks: the number of tasks in the final fit; fewer if predictions are expensive.
        make: builds the learner from the hyperparameters by name; by default the class.
        extends: the id of a special case of it, and the hyperparameters with which it is that. A fit starts from it too, and
            is the special case unless it is better than by chance.
        family: one of `FAMILIES`: similar learners.
        flexibility: its rank among the learners with which models are compared, the simplest first.
        symbols: whether it reads sequences of symbols only.
    """

    scalars: tuple[Scalar, ...] = ()
    integer: str | None = None
    largest: int = 1
    fixed: tuple[tuple[str, Any], ...] = ()
    of_process: tuple[tuple[str, str], ...] = ()
    of_process_if_any: tuple[tuple[str, str], ...] = ()
    tasks: int = 400  # thousands of numbers for at most three scalars
    make: Callable[..., Any] | None = None
    extends: tuple[str, tuple[tuple[str, float], ...]] | None = None
    family: str = "other"
    flexibility: int = 1000
    symbols: bool = False

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}; got {show(self.family)}")

    @property
    def memorizes(self) -> bool:
        """Whether it answers by the tasks of the process alone: it has them, and extends no learner that does."""
        return bool(self.of_process) and self.extends is None


def learner(
    name: str, /, *scalars: Scalar, example: dict[str, Any] | None = None, **fitting: Any
) -> Callable[[_T], _T]:
    """Declare a class as a learner with which models are compared.

    Args:
        name: its id.
        *scalars: real hyperparameters that are fitted, at most three.
        example: hyperparameters of an example that have no default.
        **fitting: the other attributes of `Fitting`.

    Raises:
        ValueError: another learner has the name, there is no such family.
    """

    def declare(cls: _T) -> _T:
        cls.name, cls.fitting, cls.example_fields = name, Fitting(scalars, **fitting), example or {}  # type: ignore[attr-defined]
        register("learner", name, cls)
        return cls

    return declare
