"""What is fitted of a learner when a model is held against it, and the decorator that makes a learner known by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.specs import register

_T = TypeVar("_T", bound=type)


@dataclass(frozen=True)
class Scalar:
    """A real hyperparameter and where to look for it.

    Attributes:
        name: the field of the learner.
        low, high: the ends of the grid of starts, in units of the typical eigenvalue to the given `power`.
        power: −1 for step sizes, 1 for penalties, 0 for pure numbers.
        bounded: whether it lies in (0, 1); any positive number otherwise.
    """

    name: str
    low: float
    high: float
    power: int = 0
    bounded: bool = False

    def starts(self, count: int, eigenvalue: float) -> np.ndarray:
        """Evenly spaced starts in the coordinate of the fit."""
        ends = np.array([self.low, self.high])
        low, high = np.log(ends / (1 - ends)) if self.bounded else np.log(ends * eigenvalue**self.power)
        return np.linspace(low, high, count)

    def value(self, coordinate: Any) -> Any:
        """The hyperparameter at a coordinate: exponential, or logistic if bounded."""
        return jax.nn.sigmoid(coordinate) if self.bounded else jnp.exp(coordinate)


STEP_SIZE = Scalar("step_size", 1e-2, 4.0, power=-1)
MOMENTUM = Scalar("momentum", 0.05, 0.95, bounded=True)
PENALTY = Scalar("penalty", 1e-3, 1e3, power=1)


@dataclass(frozen=True)
class Fitting:
    """What is fitted of a learner.

    Attributes:
        scalars: its real hyperparameters, at most two.
        integer: the name of an integer hyperparameter, or None.
        largest: the largest integer that is tried.
        fixed: other hyperparameters, that are not fitted.
        tasks: how many are fitted to in the end; fewer where answers are expensive.
        make: builds the learner from the hyperparameters by name; the class itself if left out.
        flexibility: its place among the learners that models are held against, the simplest first.
        symbols: whether it reads sequences of symbols only.
    """

    scalars: tuple[Scalar, ...] = ()
    integer: str | None = None
    largest: int = 1
    fixed: tuple[tuple[str, Any], ...] = ()
    tasks: int = 400  # they hold thousands of numbers for at most two scalars
    make: Callable[..., Any] | None = None
    flexibility: int = 1000
    symbols: bool = False


def learner(
    name: str, /, *scalars: Scalar, example: dict[str, Any] | None = None, **fitting: Any
) -> Callable[[_T], _T]:
    """Declare a class of learners to be one that models are held against.

    Args:
        name: its id.
        *scalars: real hyperparameters that are fitted, at most two.
        example: hyperparameters of an example; `{}` where all have defaults.
        **fitting: the other attributes of `Fitting`.

    Raises:
        ValueError: another learner has the name.
    """

    def declare(cls: _T) -> _T:
        cls.name, cls.fitting, cls.example_fields = name, Fitting(scalars, **fitting), example or {}  # type: ignore[attr-defined]
        register("learner", name, cls)
        return cls

    return declare
