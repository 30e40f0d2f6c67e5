"""Sequences x_{t+1} = W x_t + noise with a random orthogonal transition."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, finite_nonnegative, integer_at_least, named_key, show_number, split_keys
from ._einsum import einsum
from ._law import Law
from ._orthogonal import haar_orthogonal
from ._process import SequenceProcess, checked_law
from ._recursion import unroll
from ._shared import shared


class OrthogonalAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = W x_t + \sigma \xi_t$ with $W$ orthogonal and $\xi_t \sim N(0, I)$.

    $W$ is drawn afresh for every sequence, independently of $x_1 \sim D_{x_1}$: without `basis` from the Haar
    distribution on $O(d)$; with `basis` as $W = U R U^\top$, where $R$ turns the planes of coordinates 1 and
    2, 3 and 4, … by independent uniform angles and the Haar matrix $U$ is the same for all sequences, so that
    all transitions commute. The data of vonoswald2024 ($\sigma = 0.01$) and of sander2024's non-commuting and
    commuting orthogonal matrices.

    Args:
        law: the law $D_{x_1}$ of the initial token.
        dim: the token dimension $d \ge 1$, even with `basis`.
        noise: the standard deviation $\sigma \ge 0$.
        basis: `None`, or the seed ≥ 0 of the shared basis $U$.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `dim` is below 1 or not the dimension of the law, or odd with `basis`; `noise` is negative
            or not finite; `basis` is negative.
    """

    law: Law = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    noise: Number = eqx.field(static=True)
    basis: int | None = eqx.field(static=True)

    def __init__(self, law: Law, dim: int, noise: Number | str = 0.0, basis: int | None = None):
        self.law = checked_law("OrthogonalAR", law)
        self.dim = law.check_dim(dim)
        self.noise = finite_nonnegative("OrthogonalAR noise", noise)
        self.basis = None if basis is None else integer_at_least("OrthogonalAR basis (a seed)", basis, 0)
        if basis is not None and self.dim % 2:
            raise ValueError(
                f"OrthogonalAR with a shared basis turns planes, so dim must be even, got {self.dim}; "
                "leave out basis for odd dimensions"
            )

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
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
    """U R Uᵀ with the basis U of the seed `basis` and a random rotation R for every sequence."""
    vectors = shared(lambda: haar_orthogonal(named_key(basis, "OrthogonalAR", "basis"), dim, 1)[0])
    one, two = vectors[:, 0::2], vectors[:, 1::2]  # column p of each: the axes of plane p
    angles = 2 * jnp.pi * jax.random.uniform(key, (batch, 1, dim // 2))
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    turned_one, turned_two = cosine * one + sine * two, cosine * two - sine * one
    return einsum("bip,jp->bij", turned_one, one) + einsum("bip,jp->bij", turned_two, two)
