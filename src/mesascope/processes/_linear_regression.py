"""Prompts whose labels are a random linear function of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..core import integer_at_least, split_keys
from ..specs import Number
from ._gaussian import Gaussian
from ._law import Law
from ._matrix import Matrix, checked_covariance, matrix_power
from ._noise import NoiseRange, add_noise, checked_noise, show_noise
from ._process import PromptProcess, Prompts, checked_law
from ._random_diagonal import RandomDiagonal

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


class LinearRegression(PromptProcess):
    r"""Prompts with labels $y_i = w^\top x_i + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, and $w$ drawn for every prompt.

    Inputs are $x_i = \Sigma^{1/2} z_i$ with independent $z_i$ of the given law; $\Sigma$ is their covariance
    if that of the law is the identity. Weights are $w \sim N(0, P)$. The query and its target, the last pair,
    are drawn like the examples. The prompts of vonoswald2023, ahn2023, zhang2024, mahankali2024, gatmiry2024,
    fu2024 and vladymyrov2024.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        law: the law of the $z_i$, `Gaussian(1.0)` if left out.
        covariance: $\Sigma$: `None` for the identity; a symmetric positive definite matrix; or
            `RandomDiagonal(law)` to draw it for every prompt.
        prior: $P$: `"identity"`; `"inverse"` for $\Sigma^{-1}$ (ahn2023, gatmiry2024); or a symmetric positive
            definite matrix.
        noise: the standard deviation $\sigma \ge 0$, or `NoiseRange(largest)` to draw it for every prompt.
        sparsity: `None`, or the number $k$ of coordinates of $w$ that are kept, a uniformly random choice for
            every prompt; the others are set to 0.

    Attributes:
        covariance: `None`, the rows of $\Sigma$, or a `RandomDiagonal`.
        prior: `"identity"`, `"inverse"`, or the rows of $P$.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `dim` is below 1 or not the dimension of a law, a matrix of another shape or not symmetric
            positive definite, an unknown name of a prior, the inverse of a random covariance, a negative
            `noise`, or `sparsity` outside 1 … d.
    """

    dim: int = eqx.field(static=True)
    law: Law = eqx.field(static=True)
    covariance: Matrix | RandomDiagonal | None = eqx.field(static=True)
    prior: Matrix | str = eqx.field(static=True)
    noise: Number | NoiseRange = eqx.field(static=True)
    sparsity: int | None = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        law: Law | None = None,
        covariance: Any = None,
        prior: Any = "identity",
        noise: Number | str | NoiseRange = 0.0,
        sparsity: int | None = None,
    ):
        self.law = Gaussian(1.0) if law is None else checked_law("LinearRegression", law)
        self.dim = self.law.check_dim(dim)
        if isinstance(covariance, RandomDiagonal):
            covariance.law.check_dim(self.dim)
            self.covariance = covariance
        elif covariance is not None:
            self.covariance = checked_covariance("LinearRegression covariance", covariance, self.dim)
        else:
            self.covariance = None
        self.prior = _checked_prior(prior, self.covariance, self.dim)
        self.noise = checked_noise("LinearRegression", noise)
        self.sparsity = None if sparsity is None else _checked_sparsity(sparsity, self.dim)

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: x of shape `(batch, examples + 1, dim)`, y of `(batch, examples + 1)`."""
        from ._draws import einsum

        examples = integer_at_least("examples", examples, 1)
        batch = integer_at_least("batch", batch, 1)
        input_key, weight_key, noise_key = split_keys(key, 3)
        x = self._inputs(input_key, examples + 1, batch)
        clean = einsum("bnj,bj->bn", x, self._weights(weight_key, batch))
        return Prompts(x, add_noise(noise_key, clean, self.noise))

    def _inputs(self, key: PRNGKeyArray, count: int, batch: int) -> Float[Array, "batch count dim"]:
        import jax

        from ._draws import einsum

        z_key, covariance_key = jax.random.split(key)
        z = self.law.sample(z_key, self.dim, (batch, count))
        if self.covariance is None:
            return z
        if isinstance(self.covariance, RandomDiagonal):
            return z * self.covariance.law.sample(covariance_key, self.dim, (batch, 1))
        return einsum("bnj,ji->bni", z, matrix_power(self.covariance, 0.5))

    def _weights(self, key: PRNGKeyArray, batch: int) -> Float[Array, "batch dim"]:
        import jax
        import jax.numpy as jnp

        from ._draws import einsum, standard_normal

        gauss_key, support_key = jax.random.split(key)
        gauss = standard_normal(gauss_key, (batch, self.dim))
        weights = einsum("bj,ji->bi", gauss, self.prior_root())
        if self.sparsity is None:
            return weights
        kept = jnp.arange(self.dim) < self.sparsity
        kept = jax.random.permutation(support_key, jnp.tile(kept, (batch, 1)), axis=1, independent=True)
        return jnp.where(kept, weights, 0.0)

    def prior_root(self) -> np.ndarray:
        r"""Return the symmetric root $P^{1/2}$, shape `(d, d)`."""
        if not isinstance(self.prior, str):
            return matrix_power(self.prior, 0.5)
        if self.prior == "inverse" and isinstance(self.covariance, tuple):
            return matrix_power(self.covariance, -0.5)
        return np.eye(self.dim)

    def describe(self) -> str:
        """Return e.g. `LinearRegression(dim=5, z ~ Gaussian(scale=1), noise=0.1)`."""
        parts = [f"dim={self.dim}", f"z ~ {self.law.describe()}"]
        if isinstance(self.covariance, RandomDiagonal):
            parts.append(f"Σ = {self.covariance.describe()}")
        elif self.covariance is not None:
            parts.append("Σ given")
        if self.prior != "identity":
            parts.append("w ~ N(0, Σ⁻¹)" if self.prior == "inverse" else "w ~ N(0, P)")
        if self.noise:
            parts.append(show_noise(self.noise))
        if self.sparsity is not None:
            parts.append(f"sparsity={self.sparsity}")
        return f"LinearRegression({', '.join(parts)})"


def _checked_prior(prior: Any, covariance: Matrix | RandomDiagonal | None, dim: int) -> Matrix | str:
    if not isinstance(prior, str):
        return checked_covariance("LinearRegression prior", prior, dim)
    if prior not in ("identity", "inverse"):
        raise ValueError(f"LinearRegression prior must be 'identity', 'inverse' or a matrix, got {prior!r}")
    if prior == "inverse" and isinstance(covariance, RandomDiagonal):
        raise ValueError("LinearRegression prior 'inverse' needs a fixed covariance: give Σ as a matrix")
    return prior


def _checked_sparsity(sparsity: int, dim: int) -> int:
    kept = integer_at_least("LinearRegression sparsity", sparsity, 1)
    if kept > dim:
        raise ValueError(f"LinearRegression sparsity must be at most dim = {dim}, got {kept}")
    return kept
