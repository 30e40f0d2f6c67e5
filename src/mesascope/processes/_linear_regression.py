"""Prompts whose labels are a random linear function of the inputs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..core import covariance_matrix, exact, split_keys
from ..specs import Dim, Number, Size, SpecError, error_path, in_file_form, kind, number, rows, unknown
from ._gaussian import Gaussian
from ._law import LawField
from ._noise import NoiseField, add_noise, show_noise
from ._process import Prompts, require_dim
from ._random_diagonal import CovarianceField, RandomDiagonal
from ._task_moments import gaussian_moments, sphere_moments
from ._task_process import TaskProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


Rows = tuple[tuple[Number, ...], ...]
"""The rows of a matrix."""


def _prior(value: Any) -> str | Rows:
    if not isinstance(value, str):
        return rows(value, number)
    if value not in _PRIORS:
        raise SpecError(unknown("value", value, _PRIORS))
    return value


_PRIORS = ("identity", "inverse", "sphere")


@kind("linear-regression", dim=5)
class LinearRegression(TaskProcess):
    r"""Prompts with labels $y_i = w^\top x_i + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, and $w$ drawn for every prompt.

    Inputs are $x_i = \Sigma^{1/2} z_i$ with independent $z_i$ of the given law; $\Sigma$ is their covariance
    if that of the law is the identity; it is symmetric and positive definite. Weights are $w \sim N(0, P)$, or uniform on a
    sphere. The query and its target, the last pair, are drawn like the examples. The prompts of vonoswald2023, ahn2023,
    zhang2024, mahankali2024, gatmiry2024, fu2024, lu2024, raventos2023 and vladymyrov2024. Entries of matrices may be exact,
    fractions or strings such as `"3/10"`, which `certify` needs.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        law: the law of the $z_i$, `Gaussian(1.0)` by default.
        covariance: covariance $\Sigma$ of the inputs: `None` for I, its rows, or a `RandomDiagonal` for every prompt.
        prior: covariance $P$ of the weights: `"identity"`; `"inverse"` for $\Sigma^{-1}$ (ahn2023, gatmiry2024); a symmetric
            positive definite matrix; or `"sphere"` for $w$ uniform on $\|w\|^2 = d$ (lu2024).
        noise: the standard deviation $\sigma \ge 0$, or `NoiseRange(largest)` or `NoiseChoice(levels)` to draw it
            for every prompt.
        sparsity: `None`, or the number $k$ of coordinates of $w$ that are kept, a uniformly random choice for
            every prompt; the others are set to 0.

    Attributes:
        covariance: `None`, the rows of $\Sigma$, or a `RandomDiagonal`.
        prior: `"identity"`, `"inverse"`, `"sphere"`, or the rows of $P$.
    """

    dim: Dim
    law: LawField = Gaussian()
    covariance: CovarianceField = None
    prior: Annotated[str | Rows, PlainValidator(_prior), PlainSerializer(in_file_form)] = "identity"
    noise: NoiseField = 0.0
    sparsity: Size | None = None

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")
        if isinstance(self.covariance, RandomDiagonal):
            require_dim(self.covariance.law, self.dim, "covariance", "law")
            if self.prior == "inverse":
                raise SpecError("'inverse' needs a fixed covariance: give Σ as a matrix", "prior")
        for name in ("covariance", "prior"):
            given = getattr(self, name)
            if isinstance(given, tuple):
                with error_path(name):
                    object.__setattr__(self, name, _checked_covariance(given, self.dim))
        if self.sparsity is not None and self.prior == "sphere":
            raise SpecError("'sphere' needs all weights: leave out sparsity", "prior")
        if self.sparsity is not None and self.sparsity > self.dim:
            raise SpecError(f"must be at most dim = {self.dim}, got {self.sparsity}", "sparsity")

    def prompts_of(self, key: PRNGKeyArray, tasks: Float[Array, "batch dim"], examples: int) -> Prompts:
        """Draw one prompt for each row of weights, with inputs, noise levels and covariances of its own."""
        from ._draws import einsum

        input_key, _, noise_key = split_keys(key, 3)
        x = self._inputs(input_key, examples + 1, len(tasks))
        return Prompts(x, add_noise(noise_key, einsum("bnj,bj->bn", x, tasks), self.noise))

    def _inputs(self, key: PRNGKeyArray, count: int, batch: int) -> Float[Array, "batch count dim"]:
        import jax

        from ._draws import einsum

        z_key, covariance_key = jax.random.split(key)
        z = self.law.sample(z_key, self.dim, (batch, count))
        if self.covariance is None:
            return z
        if isinstance(self.covariance, RandomDiagonal):
            return z * self.covariance.law.sample(covariance_key, self.dim, (batch, 1))
        return einsum("bnj,ji->bni", z, _matrix_power(self.covariance, 0.5))

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Float[Array, "count dim"]:
        """Draw independent weights w, shape `(count, dim)`."""
        import jax
        import jax.numpy as jnp

        from ._draws import einsum, standard_normal

        gauss_key, support_key = split_keys(key)
        gauss = standard_normal(gauss_key, (count, self.dim))
        if self.prior == "sphere":
            weights = gauss * (self.dim**0.5 / jnp.linalg.norm(gauss, axis=1, keepdims=True))
        else:
            weights = einsum("bj,ji->bi", gauss, self.prior_root())
        if self.sparsity is None:
            return weights
        kept = jnp.arange(self.dim) < self.sparsity
        kept = jax.random.permutation(support_key, jnp.tile(kept, (count, 1)), axis=1, independent=True)
        return jnp.where(kept, weights, 0.0)

    @property
    def input_covariance(self) -> np.ndarray:
        r"""The covariance $E\,x x^\top$ of the inputs, shape `(d, d)`.

        Raises:
            TypeError: it is random, another one in every prompt.
        """
        if isinstance(self.covariance, RandomDiagonal):
            raise TypeError(f"the covariance of the inputs of {self.describe()} is random")
        shape = np.eye(self.dim) if self.covariance is None else np.array(self.covariance, float)
        return float(self.law.moment(2)) * shape

    @property
    def exact_input_covariance(self) -> np.ndarray:
        r"""The covariance $E\,x x^\top$ of the inputs as fractions, shape `(d, d)`, of objects; floats are taken as given.

        Raises:
            TypeError: it is random, another one in every prompt.
        """
        if isinstance(self.covariance, RandomDiagonal):
            raise TypeError(f"the covariance of the inputs of {self.describe()} is random")
        return exact(self.law.moment(2)) * _fractions(self.covariance, self.dim)

    def weight_moments(self, covariance: np.ndarray) -> np.ndarray:
        r"""Return $E\,v v^\top$ of $v = (1, w, w^\top \Sigma w)$, shape `(d + 2, d + 2)`; of fractions, if $\Sigma$ is.

        Raises:
            TypeError: the weights are sparse.
        """
        if self.sparsity is not None:
            raise TypeError(
                "moments of sparse weights are not known; use MonteCarlo ('monte-carlo' in a SPEC)"
            )
        if self.prior == "sphere":
            return sphere_moments(covariance)
        if covariance.dtype == object:
            return gaussian_moments(self._exact_prior(), covariance)
        root = self.prior_root()
        return gaussian_moments(root @ root, covariance)

    def _exact_prior(self) -> np.ndarray:
        """Return P as fractions."""
        if not isinstance(self.prior, str):
            return _fractions(self.prior, self.dim)
        if self.prior == "inverse" and isinstance(self.covariance, tuple):
            return _inverse(_fractions(self.covariance, self.dim))
        return _fractions(None, self.dim)

    @property
    def task_covariance(self) -> np.ndarray | None:
        r"""The covariance $P$ of Gaussian weights, shape `(d, d)`; None for the identity, the sphere and sparse weights."""
        if self.sparsity is not None or self.prior in ("identity", "sphere"):
            return None
        root = self.prior_root()
        return root @ root

    def prior_root(self) -> np.ndarray:
        r"""Return the symmetric root of the covariance $P$ of the weights, shape `(d, d)`."""
        if not isinstance(self.prior, str):
            return _matrix_power(self.prior, 0.5)
        if self.prior == "inverse" and isinstance(self.covariance, tuple):
            return _matrix_power(self.covariance, -0.5)
        return np.eye(self.dim)

    def describe(self) -> str:
        """Return e.g. `LinearRegression(dim=5, z ~ Gaussian(scale=1), noise=0.1)`."""
        parts = [f"dim={self.dim}", f"z ~ {self.law.describe()}"]
        if isinstance(self.covariance, RandomDiagonal):
            parts.append(f"Σ = {self.covariance.describe()}")
        elif self.covariance is not None:
            parts.append("Σ given")
        if self.prior != "identity":
            parts.append(
                {"inverse": "w ~ N(0, Σ⁻¹)", "sphere": "|w|² = d"}.get(str(self.prior), "w ~ N(0, P)")
            )
        if self.noise:
            parts.append(show_noise(self.noise))
        if self.sparsity is not None:
            parts.append(f"sparsity={self.sparsity}")
        return f"LinearRegression({', '.join(parts)})"


def _checked_covariance(given: Rows, dim: int) -> Rows:
    """Return the rows of a symmetric positive definite matrix, made exactly symmetric; with fractions as they are.

    Raises:
        ValueError: the shape is not `(dim, dim)`, or the matrix is not symmetric or not positive definite.
    """
    shape = (len(given), len(given[0]))
    if shape != (dim, dim):
        raise ValueError(f"must have shape ({dim}, {dim}) for dim = {dim}, got {shape}")
    checked = covariance_matrix("", np.array(given, float))
    if not any(isinstance(entry, Fraction) for row in given for entry in row):
        return tuple(tuple(row) for row in checked.tolist())
    if any(given[i][j] != given[j][i] for i in range(dim) for j in range(i)):
        raise ValueError("must be exactly symmetric where entries are fractions")
    return given


def _matrix_power(matrix: Rows, exponent: float) -> np.ndarray:
    """Return the symmetric power Sᵖ of a symmetric positive definite matrix, e.g. p = ½ or −½."""
    eigenvalues, vectors = np.linalg.eigh(np.array(matrix, float))
    return (vectors * eigenvalues**exponent) @ vectors.T


def _fractions(matrix: Rows | None, dim: int) -> np.ndarray:
    """Return a matrix as fractions, None being the identity."""
    given = np.eye(dim).tolist() if matrix is None else matrix
    return np.array([[exact(entry) for entry in row] for row in given], object)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix of fractions."""
    from flint import fmpq, fmpq_mat

    rows_of = [[fmpq(entry.numerator, entry.denominator) for entry in row] for row in matrix]
    found = fmpq_mat(rows_of).inv().tolist()
    return np.array([[Fraction(int(entry.p), int(entry.q)) for entry in row] for row in found], object)
