"""The layer of linear attention that is one step of gradient descent in a given metric, of which only the size is a weight."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import numpy as np
from jax import Array

from mesascope.core import square_matrix
from mesascope.specs import Positive

from ._arrays import axes, gaussian_array, positive_number, real_array
from ._preconditioned_linear_attention import PreconditionedStep


class StepSizeAttention(PreconditionedStep):
    r"""`PreconditionedLinearAttention` with $A = a B$: the step size $a$ is its only weight, $B$ never changes.

    Attributes:
        step_size: $a$, a real number, shape ().
        metric: $B$, d rows of d numbers, not a weight.

    Raises:
        TypeError, ValueError: for a step size that is not a real, finite number, or a metric that is not square and finite.

    Source: ahn2023, Theorem 3, where $B = \Sigma^{-1}$.
    """

    step_size: Array = eqx.field(metadata=axes(0))
    metric: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, step_size: Any, metric: Any):
        self.step_size = real_array("step_size", step_size, 0)
        self.metric = tuple(map(tuple, square_matrix("metric", metric).tolist()))

    @classmethod
    def gaussian(cls, metric: Any, scale: Positive = 0.1, *, key: Array) -> Self:
        """Return a layer with the step size N(0, scale²).

        Args:
            metric: B, shape (d, d).
            scale: standard deviation > 0 of the step size.
            key: random key.
        """
        return cls(gaussian_array(key, (), positive_number("scale", scale)), metric)

    def matrix(self) -> Array:
        """Return $A = a B$, shape (d, d)."""
        return self.step_size[..., None, None] * np.array(self.metric, self.step_size.dtype)
