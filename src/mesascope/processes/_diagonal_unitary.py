"""Sequences x_{t+1} = W x_t with a random diagonal unitary transition."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..core import integer_at_least, split_keys
from ..specs import Data, Dim, kind
from ._law import LawField
from ._process import SequenceProcess, require_dim

if TYPE_CHECKING:
    from jaxtyping import Array, Complex, PRNGKeyArray


@kind("diagonal-unitary", law="gaussian", dim=5)
class DiagonalUnitary(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = W x_t$ with $W = \mathrm{diag}(\lambda_1, \dots, \lambda_d)$.

    The $\lambda_j$ are independent and uniform on the unit circle, drawn for every sequence,
    independently of the real initial token $x_1 \sim D_{x_1}$ (zheng2024, Section 3).

    Args:
        law: the law $D_{x_1}$ of the initial token.
        dim: the token dimension $d \ge 1$.
    """

    data: ClassVar[Data] = "complex tokens"

    law: LawField
    dim: Dim

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Complex[Array, "batch horizon dim"]:
        r"""Draw independent sequences of tokens $x_1, \dots, x_T$.

        Args:
            key: a JAX random key.
            horizon: tokens per sequence $T \ge 1$ (static under `jit`).
            batch: number of sequences ≥ 1 (static under `jit`).

        Returns:
            Complex tokens, shape `(batch, horizon, dim)`; `[:, t - 1]` is $x_t = W^{t-1} x_1$.
        """
        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        token_key, transition_key = split_keys(key)
        first = self.law.sample(token_key, self.dim, (batch,))
        return first[:, None, :] * circle_powers(transition_key, horizon, batch, self.dim)

    def describe(self) -> str:
        """Return e.g. `DiagonalUnitary(Gaussian(scale=1), dim=5)`."""
        return f"DiagonalUnitary({self.law.describe()}, dim={self.dim})"


def circle_powers(
    key: PRNGKeyArray, horizon: int, batch: int, dim: int
) -> Complex[Array, "batch horizon dim"]:
    r"""Return $\lambda^0, \dots, \lambda^{T-1}$ of independent random $\lambda$, uniform on the unit circle."""
    import jax
    import jax.numpy as jnp

    turns = jax.random.uniform(key, (batch, dim))  # λ = exp(2πi turns)
    # Powers by angle, in turns modulo 1: repeated multiplication would drift off the circle.
    angles = 2 * jnp.pi * jnp.remainder(turns[:, None, :] * jnp.arange(horizon)[:, None], 1.0)
    return jax.lax.complex(jnp.cos(angles), jnp.sin(angles))
