"""Independent equal coordinates of which only the moments are known."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, exact, finite_number, random_key, show_number
from ._gauss_rule import golub_welsch, jacobi_coefficients
from ._law import MAX_ORDER, IdenticalLaw, LineRule, MomentError


class Moments(IdenticalLaw):
    r"""Independent equal coordinates with given moments $E x^0 = 1, E x, \dots, E x^6$.

    The population loss sees a law only through these numbers. Quadrature and samples use the at most four
    atoms of the Gauss rule with these moments: they match the list exactly, but moments beyond order 6 are theirs.

    Args:
        moments: seven numbers, orders 0 to 6. Give rationals as strings (`"1/3"`) or Fractions when a
            decision hangs on them: with floats, what lies within rounding of zero counts as zero.

    Raises:
        TypeError: an entry is not a number.
        ValueError: not seven entries, $E x^0 \ne 1$, or no distribution on the line has these moments.
    """

    moments: tuple[Number, ...] = eqx.field(static=True)

    def __init__(self, moments: Sequence[Number | str]):
        values = tuple(finite_number(f"Moments E x^{order}", m) for order, m in enumerate(moments))
        if len(values) != MAX_ORDER + 1:
            raise ValueError(f"Moments needs the {MAX_ORDER + 1} numbers E x^0 … E x^6, got {len(values)}")
        if values[0] != 1:
            raise ValueError(f"Moments E x^0 must be 1, got {values[0]}; divide all entries by it")
        jacobi_coefficients(values)  # refuses impossible lists
        self.moments = values

    @property
    def even(self) -> bool:
        """Whether the odd moments up to order 5 vanish; the atoms are symmetric then."""
        return not any(self.moments[1::2])

    @property
    def line_zero_probability(self) -> Number:
        """P(x = 0) under the atoms that represent the law."""
        rule = self.line_rule()
        return float(rule.weights[rule.nodes == 0].sum())

    def line_moment(self, order: int) -> Number:
        """Return the given moment.

        Raises:
            MomentError: `order` > 6.
        """
        if order > MAX_ORDER:
            raise MomentError(f"E x^{order} is not known for {self.describe()}: moments are given to order 6")
        return exact(self.moments[order])

    def line_rule(self) -> LineRule:
        """Return the atoms with these moments (at most four)."""
        return golub_welsch(jacobi_coefficients(self.moments))

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)` whose coordinates are independent draws from the atoms."""
        rule = self.line_rule()
        nodes, weights = jnp.asarray(rule.nodes), jnp.asarray(rule.weights)
        return jax.random.choice(random_key(key), nodes, (*shape, self.check_dim(dim)), p=weights)

    def describe(self) -> str:
        """Return e.g. `Moments(1, 0, 1, 0, 3, 0, 15)`."""
        return f"Moments({', '.join(show_number(m) for m in self.moments)})"
