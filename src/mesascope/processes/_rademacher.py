"""Independent fair signs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, exact, finite_positive, random_key, show_number
from ._law import IdenticalLaw, LineRule


class Rademacher(IdenticalLaw):
    r"""Independent fair signs, $P(x_{1j} = \pm c) = 1/2$: $E\,x_{1j}^{2k} = c^{2k}$.

    Args:
        scale: the absolute value $c > 0$.

    Raises:
        TypeError: `scale` is not a number.
        ValueError: `scale` is not finite and positive.
    """

    scale: Number = eqx.field(static=True)

    def __init__(self, scale: Number | str = 1.0):
        self.scale = finite_positive("Rademacher scale", scale)

    @property
    def even(self) -> bool:
        """True: the signs are fair."""
        return True

    @property
    def line_zero_probability(self) -> Number:
        """0: the coordinate is ±c."""
        return 0

    def line_moment(self, order: int) -> Number:
        r"""Return $c^n$ for even $n$, 0 for odd."""
        return exact(self.scale) ** order if order % 2 == 0 else exact(0)

    def line_rule(self) -> LineRule:
        """Return the two atoms: exact to every degree."""
        scale = float(self.scale)
        return LineRule(np.array([-scale, scale]), np.array([0.5, 0.5]))

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        signs = jax.random.rademacher(random_key(key), (*shape, self.check_dim(dim)), jnp.result_type(float))
        return float(self.scale) * signs

    def describe(self) -> str:
        """Return e.g. `Rademacher(scale=1)`."""
        return f"Rademacher(scale={show_number(self.scale)})"
