"""A token that is always the same."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..core import exact, integer_at_least
from ..specs import Number, Token, kind, show_number
from ._law import Law, ProductTerm, QuadratureTerm, point_rule, powers

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("constant", value=1)
class Constant(Law):
    r"""A fixed initial token: $x_1 = v$.

    `Constant(1.0)` is the paper's full-one token $x_1 = (1, \dots, 1)$ (zheng2024, Theorem 4.3 and
    Proposition 4.2).

    Args:
        value: the vector $v \in \mathbb R^d$, or one number for all coordinates of a token of any dimension.
    """

    value: Token

    def entries(self, dim: int) -> tuple[Number, ...]:
        """Return the entries of the token, shape (dim,)."""
        dim = self.check_dim(dim)
        return self.value if isinstance(self.value, tuple) else (self.value,) * dim

    @property
    def exchangeable(self) -> bool:
        """Whether all entries are equal."""
        return not isinstance(self.value, tuple) or len(set(self.value)) == 1

    @property
    def even(self) -> bool:
        """Whether the token is zero."""
        return not (any(self.value) if isinstance(self.value, tuple) else self.value)

    @property
    def fixed_dim(self) -> int | None:
        """The length of the vector, `None` for a single number."""
        return len(self.value) if isinstance(self.value, tuple) else None

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return $v_j^n$, if all entries are equal.

        Raises:
            ValueError: the entries differ.
        """
        self.require_exchangeable("moment")
        entry = exact(self.value[0] if isinstance(self.value, tuple) else self.value)
        return entry ** integer_at_least("order", order, 0)

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return one term: the powers of the entries."""
        return (ProductTerm(Fraction(1), tuple(powers(v) for v in self.entries(dim))),)

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return one term: a single atom per coordinate."""
        return (QuadratureTerm(1.0, tuple(point_rule(float(v)) for v in self.entries(dim))),)

    def zero_probability(self, dim: int) -> Number:
        """Return the fraction of entries that are zero."""
        return Fraction(sum(v == 0 for v in self.entries(dim)), dim)

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Return copies of the token, shape `shape + (dim,)`; `key` is not used."""
        import jax.numpy as jnp

        return jnp.broadcast_to(jnp.asarray([float(v) for v in self.entries(dim)]), (*shape, dim))

    def describe(self) -> str:
        """Return e.g. `Constant(1)` or `Constant([1, 2])`."""
        if not isinstance(self.value, tuple):
            return f"Constant({show_number(self.value)})"
        return f"Constant([{', '.join(show_number(v) for v in self.value)}])"
