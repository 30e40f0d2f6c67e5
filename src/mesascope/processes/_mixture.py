"""Laws mixed with given probabilities."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, exact, finite_nonnegative, show_number, split_keys
from ._law import Law, ProductTerm, QuadratureTerm

# Floats such as 0.1 + 0.2 + 0.7 miss 1 by their rounding; a sum this close is taken for 1 and divided out.
SUM_TOLERANCE = 1e-12


class Mixture(Law):
    r"""With probability $p_k$ the whole token is drawn from the $k$-th law: $D_{x_1} = \sum_k p_k D_k$.

    Coordinates are dependent through the choice of the law: `Mixture([("1/2", Gaussian(1)), ("1/2", Gaussian(2))])`
    is a scale mixture of whole vectors, not of single coordinates.

    Args:
        parts: pairs (probability, law). Probabilities are non-negative and sum to 1: exactly if they are
            exact numbers, within 1e-12 if some are floats (they are divided by their sum then).

    Raises:
        TypeError: a part is not a pair of a number and a law.
        ValueError: no parts, a negative probability, a sum other than 1, or parts of different dimensions.
    """

    parts: tuple[tuple[Number, Law], ...] = eqx.field(static=True)

    def __init__(self, parts: Sequence[tuple[Number | str, Law]]):
        pairs: list[tuple[Number, Law]] = []
        part: Any
        for k, part in enumerate(parts):
            try:
                probability, law = part
            except (TypeError, ValueError):
                probability, law = None, None
            if not isinstance(law, Law):
                raise TypeError(f"Mixture parts[{k}] must be a pair (probability, law), got {part!r}")
            pairs.append((finite_nonnegative(f"Mixture probability of parts[{k}]", probability), law))
        if not pairs:
            raise ValueError("Mixture needs at least one part (probability, law)")
        total = sum((exact(p) for p, _ in pairs), Fraction(0))
        tolerance = SUM_TOLERANCE if any(isinstance(p, float) for p, _ in pairs) else 0.0
        if abs(float(total - 1)) > tolerance:
            raise ValueError(
                f"Mixture probabilities must sum to 1, not {float(total)}; write rationals as strings: '1/3'"
            )
        dims = {law.fixed_dim for _, law in pairs if law.fixed_dim is not None}
        if len(dims) > 1:
            raise ValueError(
                f"Mixture parts have tokens of different dimensions {sorted(dims)}: make them agree"
            )
        self.parts = tuple(pairs)

    @property
    def weighted(self) -> tuple[tuple[Fraction, Law], ...]:
        """The parts that occur, with probabilities that sum to 1 exactly."""
        total = sum((exact(p) for p, _ in self.parts), Fraction(0))
        return tuple((exact(p) / total, law) for p, law in self.parts if p)

    @property
    def exchangeable(self) -> bool:
        """Whether every part is."""
        return all(law.exchangeable for _, law in self.weighted)

    @property
    def even(self) -> bool:
        """Whether every part is."""
        return all(law.even for _, law in self.weighted)

    @property
    def fixed_dim(self) -> int | None:
        """The dimension that the parts prescribe, if any does."""
        return next((law.fixed_dim for _, law in self.parts if law.fixed_dim is not None), None)

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return $\sum_k p_k E_k x_{1j}^n$."""
        return sum((p * law.moment(order, dim) for p, law in self.weighted), Fraction(0))

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        r"""Return $\sum_k p_k E_k \prod_b x_{1 j_b}^{n_b}$."""
        self.check_dim(dim)
        return sum((p * law.joint_moment(orders, dim) for p, law in self.weighted), Fraction(0))

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return the terms of all parts."""
        self.check_dim(dim)
        return tuple(
            ProductTerm(p * term.probability, term.moments)
            for p, law in self.weighted
            for term in law.product_terms(dim)
        )

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return the terms of all parts."""
        self.check_dim(dim)
        return tuple(
            QuadratureTerm(float(p) * term.probability, term.rules)
            for p, law in self.weighted
            for term in law.quadrature(dim)
        )

    def zero_probability(self, dim: int) -> Number:
        r"""Return $\sum_k p_k P_k(x_{1j} = 0)$."""
        self.check_dim(dim)
        return sum((p * law.zero_probability(dim) for p, law in self.weighted), Fraction(0))

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`; every part is drawn and one of them kept, token by token."""
        weighted = self.weighted
        choice_key, *keys = split_keys(key, len(weighted) + 1)
        probabilities = jnp.asarray([float(p) for p, _ in weighted])
        choice = jax.random.choice(choice_key, len(weighted), shape, p=probabilities)
        draws = [
            law.sample(k, self.check_dim(dim), shape) for k, (_, law) in zip(keys, weighted, strict=True)
        ]
        return jnp.take_along_axis(jnp.stack(draws), choice[None, ..., None], axis=0)[0]

    def describe(self) -> str:
        """Return e.g. `Mixture(1/2 Gaussian(scale=1), 1/2 Sparse(scale=1))`."""
        return f"Mixture({', '.join(f'{show_number(p)} {law.describe()}' for p, law in self.parts)})"
