"""The law of given samples."""

from __future__ import annotations

import os
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import PlainSerializer, PlainValidator, StrictBool, ValidationInfo

from ..core import integer_at_least, random_key
from ..specs import (
    LARGEST,
    Number,
    SpecError,
    SpecTypeError,
    entries,
    error_path,
    kind,
    rows,
    show,
    sixth_power_fits,
)
from ._draw_once import require_room
from ._gauss_rule import LineRule
from ._law import Law, ProductTerm, QuadratureTerm, point_rule, powers
from ._samples import Samples
from ._samples_file import MAX_SAMPLES, read_samples

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


def _samples(value: Any) -> Samples | None:
    """Return arrays, and lists of numbers or of rows, as samples whose moments can be computed."""
    found = given_numbers(value)
    if found is not None and found.table.size > MAX_SAMPLES:
        raise SpecError(
            f"holds {found.table.size} numbers, at most {MAX_SAMPLES} are accepted; give fewer, or give moments"
        )
    return found


def given_numbers(value: Any) -> Samples | None:
    """Return arrays, and lists of numbers or of rows, as samples.

    Raises:
        SpecError: they have another shape, take more than 2 GiB or are not finite.
    """
    if value is None or isinstance(value, Samples):
        return value
    array = np.asarray(value) if hasattr(value, "dtype") else _array(value)
    if array.dtype.kind not in "iuf":
        raise SpecTypeError(f"must be real numbers, got an array of {array.dtype}")
    if array.ndim not in (1, 2):
        raise SpecError(f"must have shape (n,) or (n, d), got {array.shape}")
    if array.size == 0:
        raise SpecError(f"are empty (shape {array.shape}): give at least one")
    require_room(f"{array.size} numbers", 8 * array.size)
    beyond = ~(np.abs(array) <= LARGEST)  # true for NaN too
    if beyond.any():
        where = tuple(map(int, np.argwhere(beyond)[0]))
        raise SpecError(
            f"must be finite and at most {LARGEST:g} in size, entry {where} is {array[where]}; change it"
        )
    return Samples(array)


def _array(value: Any) -> np.ndarray:
    nested = False
    if isinstance(value, list | tuple):
        if not value:
            return np.empty(0)
        value = [row.tolist() if hasattr(row, "dtype") else row for row in value]
        nested = any(isinstance(row, list | tuple) for row in value)
    table: Any = rows(value, sixth_power_fits) if nested else entries(value, sixth_power_fits)
    return np.array([[float(x) for x in row] for row in table] if nested else [float(x) for x in table])


def _read_path(value: Any, info: ValidationInfo) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise SpecTypeError(f"must be the path of a .npy or .csv file, got {show(value)}")
    return Path((info.context or {}).get("folder", ".")) / value


def _absolute_path(file: Path | None) -> str | None:
    """Return the absolute path, since the specification may be read again from another folder."""
    return None if file is None else os.path.abspath(file)


SamplesField: TypeAlias = Annotated[
    Samples, PlainValidator(_samples), PlainSerializer(lambda samples: samples and samples.tolist())
]
"""Numbers, shape (n,), or tokens, shape (n, d)."""
MaybeNumbers: TypeAlias = Annotated[
    Samples | None, PlainValidator(given_numbers), PlainSerializer(lambda given: given and given.tolist())
]
"""The same without moments, of any number that memory takes, or None."""
FileField: TypeAlias = Annotated[Path | None, PlainValidator(_read_path), PlainSerializer(_absolute_path)]
"""A file of samples, or None."""


@kind("empirical", samples=[-1, 0.5, 2])
class Empirical(Law):
    r"""The law of $n$ given samples, every sample with probability $1/n$.

    Args:
        samples: numbers or tokens; shape `(n,)`: a pool from which every coordinate is drawn independently, in any
            dimension; shape `(n, d)`: tokens of dimension d.
        joint: whether whole tokens are drawn, so that dependence between coordinates is kept; by default coordinate j
            is drawn from column j, independently of the others.
        file: instead of `samples`, a .npy or .csv file of them; in a specification a relative path starts at its folder.
    """

    samples: SamplesField = None  # type: ignore[assignment]  # or file
    joint: StrictBool = False
    file: FileField = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if (self.samples is None) == (self.file is None):
            raise SpecError("needs either samples or file" + ("" if self.file is None else ", not both"))
        if self.file is not None:
            with error_path("file"):
                object.__setattr__(self, "samples", Samples(read_samples(self.file)))
        if self.joint and self.pooled:
            raise SpecError("needs samples of shape (n, d); for d = 1 reshape to (n, 1)", "joint")

    @property
    def pooled(self) -> bool:
        """Whether every coordinate is drawn from one pool."""
        return self.samples.pooled

    def specification(self) -> dict[str, Any]:
        """Return the table that specifies the law; samples that came from a file are given by `file`."""
        fields = super().specification()
        return {name: value for name, value in fields.items() if name != "samples" or self.file is None}

    @property
    def exchangeable(self) -> bool:
        """Whether permuting the coordinates leaves the law of the samples unchanged."""
        return self.samples.rows_exchangeable if self.joint else self.samples.columns_identical

    @property
    def even(self) -> bool:
        """Whether flipping the sign of any coordinate leaves the law of the samples unchanged."""
        return self.samples.rows_even if self.joint else self.samples.columns_even

    @property
    def fixed_dim(self) -> int | None:
        """The number of columns, `None` for a pool."""
        return None if self.pooled else self.samples.table.shape[1]

    def _columns(self, dim: int) -> tuple[int, ...]:
        """Return the column from which each coordinate is drawn."""
        return (0,) * self.check_dim(dim) if self.pooled else tuple(range(self.check_dim(dim)))

    def moment(self, order: int, dim: int | None = None) -> Number:
        r"""Return the mean of $x^n$ over the samples of any one coordinate.

        Raises:
            ValueError: the coordinates are not identically distributed.
        """
        self.require_exchangeable("moment")
        return self.samples.mean_product((0,), (integer_at_least("order", order, 0),))

    def joint_moment(self, orders: tuple[int, ...], dim: int) -> Number:
        r"""Return the mean of $\prod_b x_{j_b}^{n_b}$ over the rows, or the product of means over columns.

        Raises:
            ValueError: the samples are not exchangeable.
        """
        self.require_exchangeable("joint_moment")
        if not self.joint or len(orders) > self.check_dim(dim):
            return super().joint_moment(orders, dim)
        exponents = tuple(integer_at_least("order", n, 0) for n in orders)
        return self.samples.mean_product(tuple(range(len(exponents))), exponents)

    def product_terms(self, dim: int) -> tuple[ProductTerm, ...]:
        """Return one term for independent coordinates, one term per distinct row for a joint law."""
        columns = self._columns(dim)
        if not self.joint:
            moments = {j: self.samples.moments(j) for j in set(columns)}
            return (ProductTerm(Fraction(1), tuple(moments[j] for j in columns)),)
        return tuple(ProductTerm(share, tuple(map(powers, row))) for share, row in self._distinct_rows())

    def quadrature(self, dim: int) -> tuple[QuadratureTerm, ...]:
        """Return the samples as atoms: exact to every degree."""
        columns = self._columns(dim)
        if not self.joint:
            rules = {j: _atoms(self.samples.table[:, j]) for j in set(columns)}
            return (QuadratureTerm(1.0, tuple(rules[j] for j in columns)),)
        rows = self._distinct_rows()
        return tuple(QuadratureTerm(float(share), tuple(map(point_rule, row))) for share, row in rows)

    def _distinct_rows(self) -> list[tuple[Fraction, list[float]]]:
        """Return every distinct token with its share of the samples."""
        rows, counts = np.unique(self.samples.table, axis=0, return_counts=True)
        total = int(counts.sum())
        return [(Fraction(int(n), total), row) for row, n in zip(rows.tolist(), counts, strict=True)]

    def zero_probability(self, dim: int) -> Number:
        """Return the fraction of zeros among the samples."""
        self.check_dim(dim)
        return Fraction(int((self.samples.table == 0).sum()), self.samples.table.size)

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)` with replacement."""
        import jax
        import jax.numpy as jnp

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
