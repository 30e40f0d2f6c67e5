"""Random normal numbers and orthogonal matrices, recursions, and stationary distributions; imports JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import random_key

# By default GPUs multiply 32-bit numbers with 10 bits of mantissa. That is enough for the layers of a model, but
# transitions would be orthogonal to three digits only.
einsum = partial(jnp.einsum, precision="highest")


def standard_normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, ...]:
    """Return independent N(0, 1) entries, identical to `jax.random.normal(key, shape)`.

    They are drawn as one axis: with more axes XLA on CPUs spends two thirds of the time on computing indices.
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
        # Twice: if the first projection leaves a short vector, its rounding errors are relatively large.
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
        step: the map $f$ of arrays of shape `(batch, dim)`.
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


def draw_in_float64(draw: Callable[[], Array]) -> Float[Array, ...]:
    """Return the result of `draw` in 64-bit arithmetic, rounded to the precision in use.

    Draws in 32 and in 64 bits are different numbers: without this, a process would change between training in single
    precision and evaluation in double.
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        numbers = np.asarray(draw())
    return jnp.asarray(numbers)


def stationary_distribution(transitions: Float[Array, "S S"]) -> Float[Array, " S"]:
    r"""Return the $\mu$ with $\mu^\top \pi = \mu^\top$, $\sum_s \mu_s = 1$.

    Uses the elimination of Grassmann, Taksar and Heyman: states are eliminated one by one, and every number is a sum,
    product or quotient of positive numbers, so that nothing cancels, however small the probabilities are. Solving the
    linear system instead loses all digits if the chain rarely leaves a set of states, which is common for rows from a
    Dirichlet distribution with a small parameter.

    Args:
        transitions: $\pi$, rows of probabilities. Entries below $\sqrt{\text{smallest normal float}}$ are raised to that
            number, so that every state can be reached.
    """
    states = len(transitions)
    places = jnp.arange(states)
    positive = jnp.maximum(transitions, jnp.finfo(transitions.dtype).tiny ** 0.5)

    def eliminate(step: Array, chain: Float[Array, "S S"]) -> Float[Array, "S S"]:
        state = states - 1 - step
        remaining = places < state
        leave = jnp.where(remaining, chain[state], 0.0)
        enter = jnp.where(remaining, chain[:, state] / leave.sum(), chain[:, state])
        chain = chain + jnp.where(remaining, enter, 0.0)[:, None] * leave
        return chain.at[:, state].set(enter)

    def restore(state: Array, mu: Float[Array, " S"]) -> Float[Array, " S"]:
        mu = mu.at[state].set(jnp.sum(jnp.where(places < state, mu * chain[:, state], 0.0)))
        return mu / mu.sum()

    chain = jax.lax.fori_loop(0, states - 1, eliminate, positive)
    return jax.lax.fori_loop(1, states, restore, (places == 0).astype(transitions.dtype))
