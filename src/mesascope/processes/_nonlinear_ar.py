"""Sequences whose transition is a random two-layer network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import integer_at_least, split_keys
from ..specs import Dim, Nonnegative, Positive, Size, kind, show_number
from ._law import LawField
from ._process import SequenceProcess, require_dim

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("nonlinear-ar", law="gaussian", dim=3, hidden=8)
class NonlinearAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = A \tanh(B x_t) + \sigma \xi_t$, $\xi_t \sim N(0, I)$.

    $A \in \mathbb R^{d \times m}$ has independent entries from $N(0, g^2/m)$ and $B \in \mathbb R^{m \times
    d}$ from $N(0, g^2/d)$, drawn for every sequence, independently of $x_1 \sim D_{x_1}$. Without noise the
    tokens are bounded for any gain: $|x_{t+1,i}| \le \sum_k |A_{ik}|$.

    Args:
        law: the law $D_{x_1}$ of the initial token.
        dim: the token dimension $d \ge 1$.
        hidden: the number $m \ge 1$ of hidden units.
        gain: $g > 0$; tokens decay to 0 for small gains, and sequences are chaotic for large gains.
        noise: the standard deviation $\sigma \ge 0$.
    """

    law: LawField
    dim: Dim
    hidden: Size
    gain: Positive = 1.0
    noise: Nonnegative = 0.0

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
        import jax.numpy as jnp

        from ._draws import einsum, standard_normal, unroll

        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        token_key, inner_key, outer_key, noise_key = split_keys(key, 4)
        first = self.law.sample(token_key, self.dim, (batch,))
        gain = float(self.gain)
        inner = gain / self.dim**0.5 * standard_normal(inner_key, (batch, self.hidden, self.dim))
        outer = gain / self.hidden**0.5 * standard_normal(outer_key, (batch, self.dim, self.hidden))

        def step(x: Float[Array, "batch dim"]) -> Float[Array, "batch dim"]:
            return einsum("bim,bm->bi", outer, jnp.tanh(einsum("bmj,bj->bm", inner, x)))

        return unroll(step, first, horizon, float(self.noise), noise_key)

    def describe(self) -> str:
        """Return e.g. `NonlinearAR(Gaussian(scale=1), dim=5, hidden=20, gain=2)`."""
        noise = f", noise={show_number(self.noise)}" if self.noise else ""
        gain = f"gain={show_number(self.gain)}"
        return f"NonlinearAR({self.law.describe()}, dim={self.dim}, hidden={self.hidden}, {gain}{noise})"
