"""Independent coordinates, uniform on a symmetric interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import exact, random_key
from ..specs import Number, Scale, kind
from ._gauss_rule import LineRule
from ._law import IdenticalLaw

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("uniform")
class Uniform(IdenticalLaw):
    r"""Independent coordinates, uniform on $[-h, h]$: $E\,x_{1j}^{2k} = h^{2k}/(2k+1)$.

    Args:
        scale: the half-width $h > 0$.
    """

    scale: Scale = 1.0

    even = True  # the interval is symmetric

    def line_moment(self, order: int) -> Number:
        r"""Return $h^n/(n+1)$ for even $n$, 0 for odd."""
        return exact(self.scale) ** order / (order + 1) if order % 2 == 0 else 0

    def line_rule(self) -> LineRule:
        """Return the four-point Gauss–Legendre rule, exact to degree 7."""
        nodes, weights = np.polynomial.legendre.leggauss(4)
        return LineRule(float(self.scale) * nodes, weights / weights.sum())

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax

        half = float(self.scale)
        return jax.random.uniform(random_key(key), (*shape, self.check_dim(dim)), minval=-half, maxval=half)
