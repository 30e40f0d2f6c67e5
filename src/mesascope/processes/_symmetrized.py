"""A law whose coordinates get independent random signs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..core import integer_at_least, split_keys
from ..specs import Number, kind
from ._gauss_rule import LineRule
from ._law import Law, LawField, ProductTerm, QuadratureTerm

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("symmetrized", law={"kind": "empirical", "samples": [-1, 0.5, 2]})
class Symmetrized(Law):
    r"""The law of $(s_1 x_{11}, \dots, s_d x_{1d})$ with independent signs $s_j = \pm 1$ of probability $1/2$.

    Moments with only even exponents are those of the given law, all others are 0, as Assumption 4.1 of zheng2024 asks.

    Args:
        law: the law of $x_1$, such as `Empirical` of measured tokens.
    """

    law: LawField

    even = True  # the signs are random

    @property
    def exchangeable(self) -> bool:
        """Whether the given law is exchangeable."""
        return self.law.exchangeable

    @property
    def fixed_dim(self) -> int | None:
        """The dimension of the given law."""
        return self.law.fixed_dim

    def moment(self, order: int, dim: int | None = None) -> Number:
        """Return the moment of the given law for even orders, 0 for odd."""
        even = integer_at_least("order", order, 0) % 2 == 0
        return self.law.moment(order, dim) if even else Fraction(0)

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        """Return the moment of the given law if all exponents are even, else 0."""
        even = not any(integer_at_least("order", order, 0) % 2 for order in orders)
        self.check_dim(dim)
        return self.law.joint_moment(orders, dim) if even else Fraction(0)

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return the terms of the given law without odd moments."""
        return tuple(
            ProductTerm(term.probability, tuple(map(_even_only, term.moments)))
            for term in self.law.product_terms(dim)
        )

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return the terms of the given law, with half of every weight at the opposite node."""
        return tuple(
            QuadratureTerm(term.probability, tuple(map(_both_signs, term.rules)))
            for term in self.law.quadrature(dim)
        )

    def zero_probability(self, dim: int) -> Number:
        """Return that of the given law."""
        return self.law.zero_probability(dim)

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax

        token_key, sign_key = split_keys(key, 2)
        tokens = self.law.sample(token_key, dim, shape)
        return tokens * jax.random.rademacher(sign_key, tokens.shape, tokens.dtype)

    def describe(self) -> str:
        """Return e.g. `Symmetrized(Empirical(100 samples))`."""
        return f"Symmetrized({self.law.describe()})"


def _even_only(moments: tuple[Number, ...]) -> tuple[Number, ...]:
    return tuple(Fraction(0) if order % 2 else moment for order, moment in enumerate(moments))


def _both_signs(rule: LineRule) -> LineRule:
    return LineRule(
        np.concatenate([rule.nodes, -rule.nodes]), np.concatenate([rule.weights, rule.weights]) / 2
    )
