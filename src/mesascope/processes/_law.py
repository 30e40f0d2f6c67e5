"""The base class of laws: distributions of the initial token with exact moments, quadrature and samples."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial, wraps
from inspect import isfunction
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from ..core import exact, finite_number, integer_at_least
from ..specs import Component, Number, is_ours, one_of, show_number
from ._drawn import check_drawn, check_key
from ._gauss_rule import LineRule, golub_welsch, jacobi_coefficients
from ._possible import monomials, require_possible

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

MAX_ORDER = 6
"""Highest order of moments in the population loss of one attention layer: ‖ŷ‖² has products of six token entries."""


class MomentError(ValueError):
    """The requested moment does not exist or is not known; the message gives its order."""


class ProductTerm(NamedTuple):
    """One product of independent coordinates in a finite mixture of such products.

    Attributes:
        probability: weight of the term in the mixture.
        moments: for every coordinate j the tuple (E x_j⁰, E x_j¹, …, E x_j⁶) under this term.
    """

    probability: Number
    moments: tuple[tuple[Number, ...], ...]


class QuadratureTerm(NamedTuple):
    """One product of quadrature rules in a finite mixture of such products.

    Attributes:
        probability: weight of the term in the mixture.
        rules: one rule per coordinate; weights sum to 1 and polynomials of degree ≤ 6 in each coordinate are
            integrated exactly (degree 7 too wherever the law determines it).
    """

    probability: float
    rules: tuple[LineRule, ...]


class Law(Component, family="law"):
    r"""The distribution $D_{x_1}$ of the initial token $x_1 \in \mathbb R^d$.

    The paper's $\kappa_1 = E x_{1j}^4$, $\kappa_2 = E x_{1j}^6$ are `moment(4)` and `moment(6)`; the summands
    of $\kappa_3 = \sum_{r \ne j} E x_{1j}^2 x_{1r}^4$ are `joint_moment((2, 4), dim)` (zheng2024, Assumption
    4.1).

    Parameters are static Python numbers: laws are hashable, compare by value and may be static under `jax.jit`.
    Moments are exact: a `Fraction` of the parameters, where a float is the rational number that it represents. Write
    `"1/10"` instead of `0.1` for the exact moments of one tenth.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if isfunction(vars(cls).get("sample")):
            cls.sample = _checked(cls.sample)  # type: ignore[method-assign]

    @property
    @abc.abstractmethod
    def exchangeable(self) -> bool:
        """Whether permuting the coordinates is known to leave the law unchanged."""

    @property
    @abc.abstractmethod
    def even(self) -> bool:
        """Whether flipping the sign of any one coordinate is known to leave the law unchanged."""

    @property
    @abc.abstractmethod
    def fixed_dim(self) -> int | None:
        """The only token dimension of the law, or `None` if it exists in every dimension."""

    @abc.abstractmethod
    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return $E\,x_{1j}^n$, the same for every coordinate $j$.

        Args:
            order: $n \ge 0$.
            dim: the token dimension $d$; needed only by laws whose marginals depend on it (`Sparse`).

        Raises:
            MomentError: the moment does not exist or is not known.
            ValueError: the coordinates are not identically distributed, or `dim` is needed and missing.
        """

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        r"""Return $E \prod_b x_{1 j_b}^{n_b}$ over distinct coordinates $j_b$, for an exchangeable law.

        By default it is that of independent coordinates, $\prod_b E\,x_{1j}^{n_b}$.

        Args:
            orders: the exponents $n_b \ge 0$; more exponents than coordinates give 0, an empty product gives
                1.
            dim: the token dimension $d$.

        Raises:
            MomentError: a moment does not exist or is not known.
            ValueError: the law is not exchangeable, so that the moment depends on the coordinates.
        """
        if len(orders) > self.check_dim(dim):
            return Fraction(0)
        return prod((self.moment(order, dim) for order in orders), start=Fraction(1))

    @abc.abstractmethod
    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return the law as a finite mixture of products of coordinates with their moments to order 6.

        Raises:
            MomentError: a moment of order ≤ 6 does not exist.
        """

    @abc.abstractmethod
    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return the law as a finite mixture of products of quadrature rules, exact to order 6 or better.

        The rules are classical Gauss rules or atoms, independent of `product_terms`, so that the two can be
        compared in tests. A law without a classical rule computes its rule from the moments.

        Raises:
            MomentError: a moment of order ≤ 6 does not exist.
        """

    @abc.abstractmethod
    def zero_probability(self, dim: int) -> Number:
        r"""Return $P(x_{1j} = 0)$, averaged over the coordinates $j$."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw independent initial tokens.

        Args:
            key: a JAX random key.
            dim: the token dimension $d$ (static under `jit`).
            shape: how many tokens, as an array shape (static under `jit`).

        Returns:
            An array of shape `shape + (dim,)` in JAX's default float type.
        """

    def require_exchangeable(self, what: str) -> None:
        """Refuse a moment that depends on the coordinate."""
        if not self.exchangeable:
            raise ValueError(f"{what} of {self.describe()} depends on the coordinate: use product_terms")

    def check_dim(self, dim: int) -> int:
        """Return `dim` if the law has tokens of that dimension.

        Raises:
            TypeError: `dim` is not an integer.
            ValueError: `dim` is below 1, or not the dimension of the given vectors.
        """
        dim = integer_at_least("dim", dim, 1)
        if self.fixed_dim is not None and dim != self.fixed_dim:
            raise ValueError(f"dim is {dim}, but tokens of {self.describe()} have dimension {self.fixed_dim}")
        return dim


def _checked(sample: Callable[..., Any]) -> Any:
    """Return the method `sample`, which refuses what is no sample of a law."""

    @wraps(sample)
    def checked(self: Law, key: Any, dim: int, shape: tuple[int, ...] = ()) -> Any:
        drawn = sample(self, key, dim, shape)
        check_drawn(self, sample, drawn, (*shape, dim), "real numbers")
        check_key(self, sample, dim, (_DRAWS,))
        return drawn

    return checked


_DRAWS = 64  # tokens that show whether a sample depends on its key


def require_possible_moments(law: Law, dim: int) -> None:
    """Refuse a law from outside this package, or a part of a law, whose moments to order 6 no distribution has.

    Laws of this package are not checked: their moments are tested, and those of large samples take long. Their parts are.

    Raises:
        MomentError: a moment of order ≤ 6 does not exist.
        ValueError: no distribution has these moments.
    """
    if is_ours(type(law)):
        for part in _laws_in(tuple(vars(law).values())):
            require_possible_moments(part, dim)
        return
    degree = MAX_ORDER // 2
    if law.exchangeable:

        @cache
        def joint(orders: tuple[int, ...]) -> Number:
            return finite_number(f"E x^{orders} of {law.describe()}", law.joint_moment(orders, dim))

        variables = min(dim, degree)
        require_possible(
            law.describe(),
            lambda powers: joint(tuple(sorted(filter(None, powers), reverse=True))),
            monomials(variables, degree),
        )
        return
    for term in law.product_terms(dim):
        if term.probability < 0:
            raise ValueError(
                f"a term of {law.describe()} has the probability {show_number(term.probability)}; it must not be negative"
            )
        for known in set(term.moments):
            require_possible(law.describe(), partial(_entry, known), monomials(1, degree))


def _laws_in(value: Any) -> Iterator[Law]:
    if isinstance(value, Law):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _laws_in(one)


def _entry(moments: tuple[Number, ...], powers: tuple[int, ...]) -> Number:
    return moments[powers[0]]


LawField: TypeAlias = Annotated[Law, *one_of("law")]
"""A law, or the table that specifies one."""


class IdenticalLaw(Law):
    """A law with independent, identically distributed coordinates, given by one distribution on the line.

    It is exchangeable and exists in every dimension.
    """

    exchangeable = True
    fixed_dim = None

    @abc.abstractmethod
    def line_moment(self, order: int) -> Number:
        """Return E xⁿ of one coordinate for n = `order` ≥ 0, of which 0 … 6 are used.

        Any finite number, which `moment` takes as exact: a rational one if fields enter it as `exact(field)`, else a float.
        """

    def line_rule(self) -> LineRule:
        """Return a quadrature rule for one coordinate: at most four nodes, with its moments to order 6."""
        return golub_welsch(jacobi_coefficients([self.moment(order) for order in range(MAX_ORDER + 1)]))

    @property
    def line_zero_probability(self) -> Number:
        """P(x = 0) of one coordinate: 0 unless it has an atom there."""
        return 0

    @property
    def even(self) -> bool:
        """Whether the odd moments up to order 5 vanish: the loss depends on no others."""
        return not any(self.moment(order) for order in (1, 3, 5))

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return $E\,x_{1j}^n$; it does not depend on the dimension.

        Raises:
            ValueError: no distribution has the moments of order up to n.
        """
        order = integer_at_least("order", order, 0)
        found = exact(_line_moment(self, order))
        _require_possible_line(self, order // 2)
        return found

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return one term: the law is a product."""
        moments = tuple(self.moment(order) for order in range(MAX_ORDER + 1))
        return (ProductTerm(Fraction(1), (moments,) * self.check_dim(dim)),)

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return one term: the same rule for every coordinate."""
        return (QuadratureTerm(1.0, (self.line_rule(),) * self.check_dim(dim)),)

    def zero_probability(self, dim: int) -> Number:
        r"""Return $P(x_{1j} = 0)$; it does not depend on the dimension."""
        self.check_dim(dim)
        return self.line_zero_probability


def _line_moment(law: IdenticalLaw, order: int) -> Number:
    try:
        found = law.line_moment(order)
    except OverflowError:  # a power of a float
        found = math.inf
    return finite_number(f"E x^{order} of {law.describe()}", found)


def _require_possible_line(law: IdenticalLaw, degree: int) -> None:
    """Refuse moments of order 0 to twice the degree that no distribution has; each law is checked once."""
    if degree > vars(law).get("_checked_degree", -1):
        require_possible(law.describe(), lambda powers: _line_moment(law, powers[0]), monomials(1, degree))
        vars(law)["_checked_degree"] = degree


def odd_factorial(order: int) -> int:
    """Return (n−1)!! = 1·3·5⋯(n−1) for even n = `order`."""
    return prod(range(1, order, 2))


def point_rule(value: float) -> LineRule:
    """Return the rule of a coordinate that always takes one value."""
    return LineRule(np.array([value]), np.array([1.0]))


def powers(value: Number) -> tuple[Number, ...]:
    """Return the moments (1, v, …, v⁶) of a coordinate that always takes the value v, exactly."""
    base = Fraction(value)
    return tuple(base**order for order in range(MAX_ORDER + 1))
