"""Newton's iteration for the inverse of the Gram matrix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, positive_number
from ._fitting import Scalar, learner
from ._spectrum import Ends, SpectralLearner


@learner(
    "newton",
    Scalar("start", 0.05, 1.9),
    integer="steps",
    largest=24,
    family="least-squares",
    flexibility=120,
    example={"start": 0.9, "steps": 4},
)
class Newton(SpectralLearner):
    r"""$K$ Newton iterations for the pseudo-inverse of the Gram matrix, $\hat y = C M_K q$.

    $$M_{k+1} = M_k (2I - S M_k), \qquad M_0 = \frac\theta{\|S\|^2} S,$$

    so that $1 - s f_K(s) = (1 - \theta s^2 / s_p^2)^{2^K}$. The norm of $S$ in $M_0$ is its largest eigenvalue: the
    iteration then converges to least squares for all data, independently of their scale.

    Args:
        start: $\theta > 0$, below 2 for convergence.
        steps: $K \ge 0$; with $K = 0$ the prediction is that of $M_0$.

    Raises:
        TypeError, ValueError: `start` is not a finite number > 0, `steps` is not an integer ≥ 0.

    Source: fu2024, with $\alpha = \theta/\|S\|^2$; giannou2024.
    """

    start: Array
    steps: int | Array

    def __init__(self, start: Any, steps: int):
        self.start = positive_number("start", start)
        self.steps = checked_integer("steps", steps, 0)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return the result of the iteration for every eigenvalue."""
        largest = jnp.where(ends.largest > 0, ends.largest, 1)  # no example: the values are 0
        start = real_in_precision_of(values, self.start) * (values / largest) / largest
        return jax.lax.fori_loop(0, self.steps, lambda _, m: m * (2 - values * m), start)
