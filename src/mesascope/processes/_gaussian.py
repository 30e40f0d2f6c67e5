"""Independent normal coordinates."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, exact, finite_positive, show_number
from ._law import IdenticalLaw, LineRule, odd_factorial
from ._normal import standard_normal


class Gaussian(IdenticalLaw):
    r"""Independent normal coordinates, $x_{1j} \sim N(0, \sigma^2)$.

    $E\,x_{1j}^{2k} = (2k-1)!!\,\sigma^{2k}$; odd moments vanish. The law of zheng2024, Figures 1a and 1b.

    Args:
        scale: standard deviation $\sigma > 0$.

    Raises:
        TypeError: `scale` is not a number.
        ValueError: `scale` is not finite and positive.
    """

    scale: Number = eqx.field(static=True)

    def __init__(self, scale: Number | str = 1.0):
        self.scale = finite_positive("Gaussian scale", scale)

    @property
    def even(self) -> bool:
        """True: the density is symmetric."""
        return True

    @property
    def line_zero_probability(self) -> Number:
        """0: the density has no atom."""
        return 0

    def line_moment(self, order: int) -> Number:
        r"""Return $(n-1)!!\,\sigma^n$ for even $n$, 0 for odd."""
        return exact(self.scale) ** order * odd_factorial(order) if order % 2 == 0 else exact(0)

    def line_rule(self) -> LineRule:
        """Return the four-point Gauss–Hermite rule, exact to degree 7."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(4)
        return LineRule(float(self.scale) * nodes, weights / weights.sum())

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        return float(self.scale) * standard_normal(key, (*shape, self.check_dim(dim)))

    def describe(self) -> str:
        """Return e.g. `Gaussian(scale=1)`."""
        return f"Gaussian(scale={show_number(self.scale)})"
