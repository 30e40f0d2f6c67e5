"""The law of given samples."""

from fractions import Fraction
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, integer_at_least, random_key
from ._law import Law, LineRule, ProductTerm, QuadratureTerm, point_rule, powers
from ._samples import Samples


class Empirical(Law):
    r"""The law of $n$ given samples, every sample with probability $1/n$.

    Args:
        samples: shape `(n,)`: a pool from which every coordinate is drawn independently, in any dimension;
            shape `(n, d)`: tokens of dimension d.
        joint: for samples of shape `(n, d)`: `True` draws whole rows, so that dependence between coordinates
            is kept; `False` draws coordinate j from column j, independently of the others.

    Raises:
        TypeError: the samples are not real numbers, or `joint` is not a truth value.
        ValueError: no samples, a sample that is not finite, a shape other than `(n,)` or `(n, d)`, or a joint
            law asked of a pool.
    """

    samples: Samples = eqx.field(static=True)
    joint: bool = eqx.field(static=True)
    pooled: bool = eqx.field(static=True)

    def __init__(self, samples: Any, joint: bool = False):
        raw = np.asarray(samples)
        if not (np.issubdtype(raw.dtype, np.integer) or np.issubdtype(raw.dtype, np.floating)):
            raise TypeError(f"Empirical samples must be real numbers, got an array of {raw.dtype}")
        if not isinstance(joint, bool):
            raise TypeError(f"Empirical joint must be True or False, got {joint!r}")
        if raw.ndim not in (1, 2):
            raise ValueError(f"Empirical samples must have shape (n,) or (n, d), got {raw.shape}")
        if raw.size == 0:
            raise ValueError(f"Empirical samples are empty (shape {raw.shape}): give at least one")
        if not np.isfinite(raw).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(raw))[0])
            raise ValueError(f"Empirical samples must be finite, entry {where} is {raw[where]}; drop it")
        if joint and raw.ndim == 1:
            raise ValueError(
                "Empirical with joint=True needs samples of shape (n, d); for d = 1 reshape to (n, 1)"
            )
        self.samples = Samples(raw if raw.ndim == 2 else raw[:, None])
        self.joint = joint
        self.pooled = raw.ndim == 1

    @property
    def exchangeable(self) -> bool:
        """Whether permuting the coordinates leaves the law of the samples unchanged."""
        return self.samples.rows_exchangeable if self.joint else self.samples.columns_alike

    @property
    def even(self) -> bool:
        """Whether flipping the sign of any coordinate leaves the law of the samples unchanged."""
        return self.samples.rows_even if self.joint else self.samples.columns_even

    @property
    def fixed_dim(self) -> int | None:
        """The number of columns, `None` for a pool."""
        return None if self.pooled else self.samples.table.shape[1]

    def _columns(self, dim: int) -> tuple[int, ...]:
        """The column that each coordinate is drawn from."""
        return (0,) * self.check_dim(dim) if self.pooled else tuple(range(self.check_dim(dim)))

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return the mean of $x^n$ over the samples of any one coordinate.

        Raises:
            ValueError: the coordinates are not identically distributed.
        """
        self._require_exchangeable("moment")
        return self.samples.mean_product((0,), (integer_at_least("order", order, 0),))

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        r"""Return the mean of $\prod_b x_{j_b}^{n_b}$ over the rows, or the product of means over columns.

        Raises:
            ValueError: the samples are not exchangeable.
        """
        self._require_exchangeable("joint_moment")
        exponents = tuple(integer_at_least("order", n, 0) for n in orders)
        if len(exponents) > self.check_dim(dim):
            return Fraction(0)
        if self.joint:
            return self.samples.mean_product(tuple(range(len(exponents))), exponents)
        return prod((self.samples.mean_product((0,), (n,)) for n in exponents), start=Fraction(1))

    def _require_exchangeable(self, what: str) -> None:
        if not self.exchangeable:
            raise ValueError(f"{what} of {self.describe()} depends on the coordinate: use product_terms")

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return one term for independent coordinates, one term per distinct row for a joint law."""
        columns = self._columns(dim)
        if not self.joint:
            moments = {j: self.samples.moments(j) for j in set(columns)}
            return (ProductTerm(Fraction(1), tuple(moments[j] for j in columns)),)
        rows, counts = np.unique(self.samples.table, axis=0, return_counts=True)
        total = int(counts.sum())
        return tuple(
            ProductTerm(Fraction(int(count), total), tuple(powers(value) for value in row))
            for row, count in zip(rows.tolist(), counts, strict=True)
        )

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return the atoms themselves: exact to every degree."""
        columns = self._columns(dim)
        if not self.joint:
            rules = {j: _atoms(self.samples.table[:, j]) for j in set(columns)}
            return (QuadratureTerm(1.0, tuple(rules[j] for j in columns)),)
        rows, counts = np.unique(self.samples.table, axis=0, return_counts=True)
        return tuple(
            QuadratureTerm(float(count / counts.sum()), tuple(point_rule(value) for value in row))
            for row, count in zip(rows.tolist(), counts, strict=True)
        )

    def zero_probability(self, dim: int) -> Number:
        """Return the fraction of zeros among the samples."""
        self.check_dim(dim)
        return Fraction(int((self.samples.table == 0).sum()), self.samples.table.size)

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)` with replacement."""
        table, key = jnp.asarray(self.samples.table), random_key(key)
        columns = self._columns(dim)
        if self.joint:
            return table[jax.random.randint(key, shape, 0, len(table))]
        return table[jax.random.randint(key, (*shape, dim), 0, len(table)), jnp.asarray(columns)]

    def describe(self) -> str:
        """Return e.g. `Empirical(100 samples)` or `Empirical(100 joint samples of dimension 5)`."""
        count, columns = self.samples.table.shape
        if self.pooled:
            return f"Empirical({count} samples)"
        return f"Empirical({count} {'joint' if self.joint else 'independent'} samples of dimension {columns})"


def _atoms(column: np.ndarray) -> LineRule:
    nodes, counts = np.unique(column, return_counts=True)
    return LineRule(nodes, counts / counts.sum())
