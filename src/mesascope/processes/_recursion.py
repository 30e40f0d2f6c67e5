"""Sequences by recursion: every token from the one before, with noise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._normal import standard_normal

Tokens = Float[Array, "batch dim"]


def unroll(
    step: Callable[[Tokens], Tokens], first: Tokens, horizon: int, noise: float, key: PRNGKeyArray
) -> Float[Array, "batch horizon dim"]:
    r"""Return $x_1, \dots, x_T$ with $x_{t+1} = f(x_t) + \sigma \xi_t$, $\xi_t \sim N(0, I)$.

    Args:
        step: the map $f$, from and to shape `(batch, dim)`.
        first: $x_1$, shape `(batch, dim)`.
        horizon: $T$.
        noise: standard deviation $\sigma \ge 0$; at 0 no random numbers are drawn.
        key: a JAX random key, for the noise.
    """
    shocks = noise * standard_normal(key, (horizon, *first.shape)) if noise else None

    def advance(token: Tokens, shock: Tokens | None) -> tuple[Tokens, Tokens]:
        following = step(token)
        return (following if shock is None else following + shock), token

    return jnp.moveaxis(jax.lax.scan(advance, first, shocks, length=horizon)[1], 0, 1)
