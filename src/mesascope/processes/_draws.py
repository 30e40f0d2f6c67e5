"""What samples are made of: normal numbers, orthogonal matrices, recursions, stationary distributions; imports JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import random_key

# By default GPUs multiply 32-bit numbers with 10 bits of mantissa: good enough for the layers of a model, but a
# transition would be orthogonal to three digits only.
einsum = partial(jnp.einsum, precision="highest")


def standard_normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, ...]:
    """Return independent N(0, 1) entries, the very numbers of `jax.random.normal(key, shape)`.

    They are drawn in one row: with more axes XLA on a CPU spends two thirds of the time on the index of each.
    """
    return jax.random.normal(random_key(key), (math.prod(shape),)).reshape(shape)


def haar_orthogonal(key: PRNGKeyArray, dim: int, batch: int) -> Float[Array, "batch dim dim"]:
    """Draw independent orthogonal matrices, Haar distributed on O(d), shape `(batch, dim, dim)`.

    The rows are Gaussian vectors made orthonormal one after another: the QR decomposition whose R has a
    positive diagonal. For the small dimensions of processes this is faster than a batched `jnp.linalg.qr`.
    """
    rows = standard_normal(key, (dim, batch, dim))

    def add_row(
        basis: Float[Array, "batch dim dim"], step: tuple[Array, Array]
    ) -> tuple[Float[Array, "batch dim dim"], None]:
        place, row = step
        # Twice: what the first projection leaves may be short, and its rounding errors then are not.
        for _ in range(2):
            row = row - einsum("bkj,bk->bj", basis, einsum("bkj,bj->bk", basis, row))
        return basis.at[:, place].set(row / jnp.linalg.norm(row, axis=-1, keepdims=True)), None

    return jax.lax.scan(add_row, jnp.zeros((batch, dim, dim)), (jnp.arange(dim), rows))[0]


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


def shared(draw: Callable[[], Array]) -> Float[Array, ...]:
    """Return what `draw` gives in 64-bit arithmetic, rounded to the precision in use.

    Draws of 32 and of 64 bits are different numbers: a process would be another one for a model that is trained in
    single precision and judged in double.
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        numbers = np.asarray(draw())
    return jnp.asarray(numbers)


def stationary_distribution(transitions: Float[Array, "S S"]) -> Float[Array, " S"]:
    r"""Return the $\mu$ with $\mu^\top \pi = \mu^\top$, $\sum_s \mu_s = 1$.

    By the elimination of Grassmann, Taksar and Heyman: the states are taken out of the chain one by one, and
    every number is a sum, product or quotient of positive ones, so that nothing cancels however small the
    probabilities are. A solver of the linear system has no digit left when the chain hardly ever leaves a set
    of states, as is usual for rows from a Dirichlet distribution with a small parameter.

    Args:
        transitions: $\pi$, rows of probabilities. Entries below $\sqrt{\text{least normal float}}$ count as
            that, so that every chain can reach every state.
    """
    states = len(transitions)
    places = jnp.arange(states)
    positive = jnp.maximum(transitions, jnp.finfo(transitions.dtype).tiny ** 0.5)

    def take_out(step: Array, chain: Float[Array, "S S"]) -> Float[Array, "S S"]:
        state = states - 1 - step
        remains = places < state
        leave = jnp.where(remains, chain[state], 0.0)
        enter = jnp.where(remains, chain[:, state] / leave.sum(), chain[:, state])
        chain = chain + jnp.where(remains, enter, 0.0)[:, None] * leave
        return chain.at[:, state].set(enter)

    def put_back(state: Array, mu: Float[Array, " S"]) -> Float[Array, " S"]:
        mu = mu.at[state].set(jnp.sum(jnp.where(places < state, mu * chain[:, state], 0.0)))
        return mu / mu.sum()

    chain = jax.lax.fori_loop(0, states - 1, take_out, positive)
    return jax.lax.fori_loop(1, states, put_back, (places == 0).astype(transitions.dtype))
