"""Sequences whose transition is a random two-layer network."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, finite_nonnegative, finite_positive, integer_at_least, show_number, split_keys
from ._einsum import einsum
from ._law import Law
from ._normal import standard_normal
from ._process import SequenceProcess, checked_law
from ._recursion import unroll


class NonlinearAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = A \tanh(B x_t) + \sigma \xi_t$, $\xi_t \sim N(0, I)$.

    $A \in \mathbb R^{d \times m}$ has independent entries from $N(0, g^2/m)$ and $B \in \mathbb R^{m \times
    d}$ from $N(0, g^2/d)$, drawn afresh for every sequence, independently of $x_1 \sim D_{x_1}$. Since tanh is
    bounded, so are the tokens, whatever the gain: $|x_{t+1,i}| \le \sum_k |A_{ik}|$ without noise.

    Args:
        law: the law $D_{x_1}$ of the initial token.
        dim: the token dimension $d \ge 1$.
        hidden: the number $m \ge 1$ of hidden units.
        gain: $g > 0$; tokens fade for small gains, and sequences become chaotic for large ones.
        noise: the standard deviation $\sigma \ge 0$.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `dim` is below 1 or not the dimension of the law, `hidden` is below 1, `gain` is not
            positive, or `noise` is negative.
    """

    law: Law = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    gain: Number = eqx.field(static=True)
    noise: Number = eqx.field(static=True)

    def __init__(self, law: Law, dim: int, hidden: int, gain: Number | str = 1.0, noise: Number | str = 0.0):
        self.law = checked_law("NonlinearAR", law)
        self.dim = law.check_dim(dim)
        self.hidden = integer_at_least("NonlinearAR hidden", hidden, 1)
        self.gain = finite_positive("NonlinearAR gain", gain)
        self.noise = finite_nonnegative("NonlinearAR noise", noise)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
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
