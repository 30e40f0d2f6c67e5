"""Independent normal coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import exact
from ..specs import Number, Scale, kind
from ._gauss_rule import LineRule
from ._law import IdenticalLaw, odd_factorial

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("gaussian")
class Gaussian(IdenticalLaw):
    r"""Independent normal coordinates, $x_{1j} \sim N(0, \sigma^2)$.

    $E\,x_{1j}^{2k} = (2k-1)!!\,\sigma^{2k}$; odd moments vanish. The law of zheng2024, Figures 1a and 1b.

    Args:
        scale: standard deviation $\sigma > 0$.
    """

    scale: Scale = 1.0

    even = True  # the density is symmetric

    def line_moment(self, order: int) -> Number:
        r"""Return $(n-1)!!\,\sigma^n$ for even $n$, 0 for odd."""
        return exact(self.scale) ** order * odd_factorial(order) if order % 2 == 0 else 0

    def line_rule(self) -> LineRule:
        """Return the four-point Gauss–Hermite rule, exact to degree 7."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(4)
        return LineRule(float(self.scale) * nodes, weights / weights.sum())

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        from ._draws import standard_normal

        return float(self.scale) * standard_normal(key, (*shape, self.check_dim(dim)))
