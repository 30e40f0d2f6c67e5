"""Chebyshev's semi-iterative method."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import concrete

from ._arithmetic import real_in_precision_of
from ._checks import checked_integer, positive_number
from ._fitting import Scalar, learner
from ._spectrum import Ends, SpectralLearner


def _from_spread(lower: Any, spread: Any, steps: int) -> Chebyshev:
    """Return the learner with upper = lower · (1 + spread), so that upper > lower."""
    return Chebyshev(lower, lower * (1 + spread), steps)


@learner(
    "chebyshev",
    Scalar("lower", 1e-2, 1.0, power=1),
    Scalar("spread", 1.0, 1e2),
    integer="steps",
    largest=48,
    make=_from_spread,
    family="descent",
    flexibility=190,
    example={"lower": 0.2, "upper": 5.0, "steps": 5},
)
class Chebyshev(SpectralLearner):
    r"""$K$ steps of gradient descent from $W_0 = 0$, with optimal step sizes for eigenvalues of $\bar S$ in an interval.

    $$1 - s f_K(s) = \frac{T_K\left(\frac{u + l - 2s}{u - l}\right)}{T_K\left(\frac{u + l}{u - l}\right)}$$

    with the Chebyshev polynomial $T_K$: of all polynomials of degree $K$ that are 1 at 0, the one with the smallest
    maximum on $[l, u]$. One step is gradient descent with $\eta = 2/(l + u)$; so are $K$ steps if $l = u = 1/\eta$.

    Args:
        lower: $l > 0$.
        upper: $u \ge l$.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: a number that is not finite or not > 0, `upper` < `lower`, `steps` is not an integer ≥ 1.
    """

    lower: Array
    upper: Array
    steps: int | Array

    def __init__(self, lower: Any, upper: Any, steps: int):
        self.lower, self.upper = positive_number("lower", lower), positive_number("upper", upper)
        if concrete(self.lower, self.upper) and self.upper < self.lower:
            raise ValueError(f"upper must be at least lower = {self.lower}, got {self.upper}; swap the two")
        self.steps = checked_integer("steps", steps, 1)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by the three-term recursion of the polynomials, in a form that is also valid for l = u."""
        lower, upper = real_in_precision_of(values, self.lower), real_in_precision_of(values, self.upper)
        centre, radius2 = (upper + lower) / 2, ((upper - lower) / 2) ** 2

        def step(_: Any, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            f, move, weight = carry
            new = 1 / (2 * centre - radius2 * weight)
            move = radius2 * new * weight * move + 2 * new * (1 - values * f)
            return f + move, move, new

        first = jnp.broadcast_to(1 / centre, values.shape)
        return jax.lax.fori_loop(1, self.steps, step, (first, first, 1 / centre))[0]
