"""Least squares of minimum norm."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ._arithmetic import inverse_above
from ._fitting import learner
from ._spectrum import Ends, SpectralLearner


@learner("least-squares", family="least-squares", flexibility=40)
class LeastSquares(SpectralLearner):
    r"""The minimum of $\sum_i |y_i - W x_i|^2$; of all minima the one of minimum norm.

    $$W = C S^+, \qquad f(s) = 1/s \text{ for } s > 0, \quad f(0) = 0.$$

    Eigenvalues within rounding of zero, $s \le 16\, \varepsilon\, s_p$ with $\varepsilon$ the spacing of numbers at 1,
    are taken as 0.

    Source: the limit of `Ridge` for $r \to 0$ and of `GradientDescent` for $K \to \infty$.
    """

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return 1/s, and 0 where s is 0 up to rounding."""
        return inverse(values, ends.largest)


def inverse(values: Array, largest: Array) -> Array:
    """Return 1/values, and 0 for values that are 0 up to the rounding of the largest eigenvalue."""
    return inverse_above(16 * jnp.finfo(values.dtype).eps * largest, values)
