"""Independent fair signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import exact, random_key
from ..specs import Number, Scale, kind
from ._gauss_rule import LineRule
from ._law import IdenticalLaw

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("rademacher")
class Rademacher(IdenticalLaw):
    r"""Independent fair signs, $P(x_{1j} = \pm c) = 1/2$: $E\,x_{1j}^{2k} = c^{2k}$.

    Args:
        scale: the absolute value $c > 0$.
    """

    scale: Scale = 1.0

    even = True  # the signs are fair

    def line_moment(self, order: int) -> Number:
        r"""Return $c^n$ for even $n$, 0 for odd."""
        return exact(self.scale) ** order if order % 2 == 0 else 0

    def line_rule(self) -> LineRule:
        """Return the two atoms: exact to every degree."""
        scale = float(self.scale)
        return LineRule(np.array([-scale, scale]), np.array([0.5, 0.5]))

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax
        import jax.numpy as jnp

        signs = jax.random.rademacher(random_key(key), (*shape, self.check_dim(dim)), jnp.result_type(float))
        return float(self.scale) * signs
