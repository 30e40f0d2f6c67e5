"""Tokens with one non-zero coordinate of random position and sign."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..core import exact, integer_at_least, split_keys
from ..specs import Number, Scale, kind
from ._gauss_rule import LineRule
from ._law import Law, ProductTerm, QuadratureTerm, point_rule, powers

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("sparse")
class Sparse(Law):
    r"""One-hot tokens: $x_1 = \pm c\,e_j$ with $j$ uniform on the $d$ coordinates and a fair sign.

    $E \prod_b x_{1 j_b}^{n_b} = c^n/d$ if a single exponent $n$ is non-zero and even, and 0 otherwise. The
    paper's Example 4.1 (zheng2024), where the learned mesa-optimizer recovers the data exactly.

    Args:
        scale: the absolute value $c > 0$ of the non-zero coordinate.
    """

    scale: Scale = 1.0

    exchangeable = True  # all positions are equally likely
    even = True  # the sign is fair
    fixed_dim = None  # it exists in every dimension

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return $E\,x_{1j}^n = c^n/d$ for even $n > 0$.

        Raises:
            ValueError: `dim` is not given and the moment depends on it.
        """
        order = integer_at_least("order", order, 0)
        if dim is None and order and order % 2 == 0:
            raise ValueError(
                f"E x^{order} of {self.describe()} depends on the dimension: call moment({order}, dim)"
            )
        return self.joint_moment((order,), 1 if dim is None else dim)

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        r"""Return $c^n/d$ if $n$ is the only non-zero exponent and even, 1 if there is none, else 0."""
        nonzero = [n for n in (integer_at_least("order", n, 0) for n in orders) if n]
        if len(orders) > self.check_dim(dim) or len(nonzero) > 1:
            return Fraction(0)
        if not nonzero:
            return Fraction(1)
        return exact(self.scale) ** nonzero[0] / dim if nonzero[0] % 2 == 0 else Fraction(0)

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return d terms: in the j-th, coordinate j is ±c and the others are 0."""
        signs = tuple(m if order % 2 == 0 else Fraction(0) for order, m in enumerate(powers(self.scale)))
        return tuple(
            ProductTerm(Fraction(1, dim), tuple(signs if i == j else powers(0) for i in range(dim)))
            for j in range(self.check_dim(dim))
        )

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return d terms: in the j-th, coordinate j has the atoms ±c and the others the atom 0."""
        signs = LineRule(float(self.scale) * np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
        zero = point_rule(0.0)
        return tuple(
            QuadratureTerm(1 / dim, tuple(signs if i == j else zero for i in range(dim)))
            for j in range(self.check_dim(dim))
        )

    def zero_probability(self, dim: int) -> Number:
        r"""Return $1 - 1/d$."""
        return 1 - Fraction(1, self.check_dim(dim))

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax
        import jax.numpy as jnp

        place_key, sign_key = split_keys(key)
        place = jax.random.randint(place_key, shape, 0, self.check_dim(dim))
        sign = jax.random.rademacher(sign_key, shape, jnp.result_type(float))
        return float(self.scale) * sign[..., None] * jax.nn.one_hot(place, dim, dtype=sign.dtype)
