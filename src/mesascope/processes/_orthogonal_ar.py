"""Sequences x_{t+1} = W x_t + noise with a random orthogonal transition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import integer_at_least, named_key, split_keys
from ..specs import Dim, Nonnegative, Seed, SpecError, kind, show_number
from ._law import LawField
from ._process import SequenceProcess, require_dim

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("orthogonal-ar", law="gaussian", dim=4)
class OrthogonalAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = W x_t + \sigma \xi_t$ with $W$ orthogonal and $\xi_t \sim N(0, I)$.

    $W$ is drawn for every sequence, independently of $x_1 \sim D_{x_1}$: without `basis` from the Haar
    distribution on $O(d)$; with `basis` as $W = U R U^\top$, where $R$ rotates the planes of coordinates 1 and
    2, 3 and 4, … by independent uniform angles and the Haar matrix $U$ is the same for all sequences, so that
    all transitions commute. The data of vonoswald2024 ($\sigma = 0.01$) and of sander2024's non-commuting and
    commuting orthogonal matrices.

    Args:
        law: the law $D_{x_1}$ of the initial token.
        dim: the token dimension $d \ge 1$, even with `basis`.
        noise: the standard deviation $\sigma \ge 0$.
        basis: `None`, or the seed ≥ 0 of the shared basis $U$.
    """

    law: LawField
    dim: Dim
    noise: Nonnegative = 0.0
    basis: Seed | None = None

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")
        if self.basis is not None and self.dim % 2:
            raise SpecError(
                f"must be even with a shared basis, which rotates planes, got {self.dim}; remove basis for odd dimensions",
                "dim",
            )

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
        from ._draws import einsum, haar_orthogonal, unroll

        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        token_key, transition_key, noise_key = split_keys(key, 3)
        first = self.law.sample(token_key, self.dim, (batch,))
        if self.basis is None:
            transitions = haar_orthogonal(transition_key, self.dim, batch)
        else:
            transitions = _commuting(transition_key, self.basis, self.dim, batch)
        return unroll(
            lambda x: einsum("bij,bj->bi", transitions, x), first, horizon, float(self.noise), noise_key
        )

    def describe(self) -> str:
        """Return e.g. `OrthogonalAR(Gaussian(scale=1), dim=10, noise=0.01)`."""
        noise = f", noise={show_number(self.noise)}" if self.noise else ""
        basis = "" if self.basis is None else f", basis={self.basis}"
        return f"OrthogonalAR({self.law.describe()}, dim={self.dim}{noise}{basis})"


def _commuting(key: PRNGKeyArray, basis: int, dim: int, batch: int) -> Float[Array, "batch dim dim"]:
    """Return U R Uᵀ with the basis U of the seed `basis` and a random rotation R for every sequence."""
    import jax
    import jax.numpy as jnp

    from ._draws import draw_in_float64, einsum, haar_orthogonal

    vectors = draw_in_float64(lambda: haar_orthogonal(named_key(basis, "OrthogonalAR", "basis"), dim, 1)[0])
    one, two = vectors[:, 0::2], vectors[:, 1::2]  # column p of each: an axis of plane p
    angles = 2 * jnp.pi * jax.random.uniform(key, (batch, 1, dim // 2))
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    rotated_one, rotated_two = cosine * one + sine * two, cosine * two - sine * one
    return einsum("bip,jp->bij", rotated_one, one) + einsum("bip,jp->bij", rotated_two, two)
