"""Independent, identically distributed coordinates with given moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import exact, random_key
from ..specs import LARGEST, Number, Numbers, SpecError, error_path, kind, show_number
from ._gauss_rule import LineRule, golub_welsch, jacobi_coefficients
from ._law import MAX_ORDER, IdenticalLaw, MomentError

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("moments", moments=[1, 0, 1, 0, 3, 0, 15])
class Moments(IdenticalLaw):
    r"""Independent, identically distributed coordinates with given moments $E x^0 = 1, E x, \dots, E x^6$.

    The population loss depends on a law only through these moments. Quadrature and samples use the at most four
    atoms of the Gauss rule with these moments; the moments of higher order of samples are those of the atoms.

    Args:
        moments: seven numbers, orders 0 to 6. Give rationals as strings (`"1/3"`) or Fractions if the number of
            atoms matters: with floats, a determinant within rounding of zero counts as zero.
    """

    moments: Numbers

    def __post_init__(self) -> None:
        if len(self.moments) != MAX_ORDER + 1:
            what = f"must be the {MAX_ORDER + 1} numbers E x^0 … E x^{MAX_ORDER}, got {len(self.moments)}"
            raise SpecError(what, "moments")
        if self.moments[0] != 1:
            raise SpecError(f"E x^0 must be 1, got {self.moments[0]}; divide all entries by it", "moments", 0)
        for order, moment in enumerate(self.moments):
            if abs(float(moment)) > LARGEST**order:
                raise SpecError(
                    f"must be at most {LARGEST**order:g} in size; choose other units", "moments", order
                )
        with error_path("moments"):
            jacobi_coefficients(self.moments)  # refuses impossible lists

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
        import jax
        import jax.numpy as jnp

        rule = self.line_rule()
        nodes, weights = jnp.asarray(rule.nodes), jnp.asarray(rule.weights)
        return jax.random.choice(random_key(key), nodes, (*shape, self.check_dim(dim)), p=weights)

    def describe(self) -> str:
        """Return e.g. `Moments(1, 0, 1, 0, 3, 0, 15)`."""
        return f"Moments({', '.join(show_number(m) for m in self.moments)})"
