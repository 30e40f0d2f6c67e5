"""Independent Laplace coordinates."""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING

from ..core import exact, random_key
from ..specs import Number, Scale, kind
from ._law import IdenticalLaw

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("laplace")
class Laplace(IdenticalLaw):
    r"""Independent coordinates with density $e^{-|x|/b}/(2b)$: $E\,x_{1j}^{2k} = (2k)!\, b^{2k}$.

    Args:
        scale: $b > 0$ (not the standard deviation, which is $\sqrt2\, b$).
    """

    scale: Scale = 1.0

    even = True  # the density is symmetric

    def line_moment(self, order: int) -> Number:
        r"""Return $n!\, b^n$ for even $n$, 0 for odd."""
        return factorial(order) * exact(self.scale) ** order if order % 2 == 0 else 0

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax

        return float(self.scale) * jax.random.laplace(random_key(key), (*shape, self.check_dim(dim)))
