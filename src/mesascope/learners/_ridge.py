"""Ridge regression."""

from __future__ import annotations

from typing import Any

from jax import Array

from ._arithmetic import per_example, real_in_precision_of
from ._checks import nonnegative_number
from ._fitting import PENALTY, learner
from ._least_squares import inverse
from ._spectrum import Ends, SpectralLearner


@learner(
    "ridge",
    PENALTY,
    extends=("least-squares", (("penalty", 0.0),)),
    family="least-squares",
    flexibility=60,
    example={"penalty": 0.7},
)
class Ridge(SpectralLearner):
    r"""The minimum of $\sum_i |y_i - W x_i|^2 + r \|W\|^2$, with the sum over the examples, not their mean.

    $$W = C (S + r I)^{-1}, \qquad f(s) = \frac1{s + r/n}.$$

    With $r = 0$ it is least squares of minimum norm. The posterior mean of independent $W_{jk} \sim N(0, \tau^2)$ with
    noise $\sigma^2$ has $r = \sigma^2/\tau^2$; a mesa layer with regularization $\lambda$ has $r = 1/\lambda$.

    Args:
        penalty: $r \ge 0$.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number ≥ 0.

    Source: vonoswald2024, section on the mesa layer.
    """

    penalty: Array

    def __init__(self, penalty: Any):
        self.penalty = nonnegative_number("penalty", penalty)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return 1/(s + r/n)."""
        return inverse(values + per_example(real_in_precision_of(values, self.penalty), n), ends.largest)
