"""Mixtures of laws with given probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from ..core import exact, split_keys
from ..specs import (
    Nonnegative,
    Number,
    Spec,
    SpecError,
    SpecTypeError,
    error_path,
    in_file_form,
    kind,
    read_table,
    show,
    show_number,
    specification,
)
from ._law import Law, LawField, ProductTerm, QuadratureTerm
from ._probabilities import require_sum_one

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

_Parts: TypeAlias = tuple[tuple[Number, Law], ...]


class _Part(Spec):
    """One part of a mixture.

    Attributes:
        probability: the probability of the part, at least 0.
        law: the law of tokens from this part.
    """

    probability: Nonnegative
    law: LawField


def _read_parts(value: Any, info: ValidationInfo) -> _Parts:
    """Return the parts, given as pairs (probability, law) or tables with these fields."""
    if not isinstance(value, list | tuple):
        raise SpecTypeError(f"must list parts (probability, law), got {show(value)}")
    if not value:
        raise SpecError("must list parts (probability, law), at least one")
    parts = []
    for k, given in enumerate(value):
        if isinstance(given, list | tuple) and len(given) == 2:
            given = {"probability": given[0], "law": given[1]}
        elif not isinstance(given, Mapping):
            raise SpecTypeError(f"must be a pair (probability, law), got {show(given)}", k)
        with error_path(k):
            part = read_table(_Part, given, info)
        parts.append((part.probability, part.law))
    return tuple(parts)


def _written_parts(parts: _Parts) -> list[dict[str, Any]]:
    return [{"probability": in_file_form(p), "law": specification(law)} for p, law in parts]


Parts: TypeAlias = Annotated[_Parts, PlainValidator(_read_parts), PlainSerializer(_written_parts)]
"""Pairs (probability, law), or tables with these fields."""


@kind("mixture", parts=[("1/2", "gaussian"), ("1/2", "rademacher")])
class Mixture(Law):
    r"""A mixture of laws: with probability $p_k$ the token is drawn from the $k$-th law, $D_{x_1} = \sum_k p_k D_k$.

    Coordinates are dependent through the choice of the law: `Mixture([("1/2", Gaussian(1)), ("1/2", Gaussian(2))])`
    is a scale mixture of vectors, not of single coordinates.

    Args:
        parts: probabilities and laws, in pairs (probability, law). Probabilities are non-negative and sum to 1:
            exactly if they are exact numbers, within 1e-12 if some are floats (they are divided by their sum then).
    """

    parts: Parts

    def __post_init__(self) -> None:
        require_sum_one([probability for probability, _ in self.parts], "parts")
        dims = {law.fixed_dim for _, law in self.parts if law.fixed_dim is not None}
        if len(dims) > 1:
            raise SpecError(f"have tokens of different dimensions {sorted(dims)}: make them agree", "parts")

    @property
    def weighted(self) -> tuple[tuple[Fraction, Law], ...]:
        """The parts of positive probability, with probabilities that sum to 1 exactly."""
        total = sum((exact(p) for p, _ in self.parts), Fraction(0))
        return tuple((exact(p) / total, law) for p, law in self.parts if p)

    @property
    def exchangeable(self) -> bool:
        """Whether all parts are exchangeable."""
        return all(law.exchangeable for _, law in self.weighted)

    @property
    def even(self) -> bool:
        """Whether all parts are even."""
        return all(law.even for _, law in self.weighted)

    @property
    def fixed_dim(self) -> int | None:
        """The dimension of the parts, or `None` if all of them exist in every dimension."""
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
        """Draw tokens of shape `shape + (dim,)`: for every token all laws are sampled and one sample is chosen."""
        import jax
        import jax.numpy as jnp

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
