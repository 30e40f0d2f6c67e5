"""Random probabilities, and symbols that are drawn with them; compiled; imports JAX.

Symbols are drawn as the largest of log-probabilities plus Gumbel variates, so that one of probability 0 is never drawn, and
rows need not sum to 1 to the last bit. Cumulated sums of rounded numbers ensure neither.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..core import random_key


def dirichlet(
    key: PRNGKeyArray, concentration: float, symbols: int, shape: tuple[int, ...]
) -> Float[Array, "*shape symbols"]:
    """Draw independent rows of probabilities from a symmetric Dirichlet distribution, shape `(*shape, symbols)`."""
    return _dirichlet(random_key(key), jnp.asarray(concentration), symbols, shape)


def independent_symbols(
    key: PRNGKeyArray, probabilities: Float[Array, "batch S"], horizon: int
) -> Int[Array, "batch horizon"]:
    """Draw independent symbols, with one row of probabilities for each sequence."""
    return _independent_symbols(random_key(key), probabilities, horizon)


def chain_symbols(
    key: PRNGKeyArray, transitions: Float[Array, "batch S S"], horizon: int
) -> Int[Array, "batch horizon"]:
    """Draw Markov chains with uniform first symbols, with one transition matrix for each sequence."""
    return _chain_symbols(random_key(key), transitions, horizon)


@partial(jax.jit, static_argnums=(2, 3))
def _dirichlet(key: PRNGKeyArray, concentration: Array, symbols: int, shape: tuple[int, ...]) -> Array:
    return jax.random.dirichlet(key, jnp.full(symbols, concentration), shape)


@partial(jax.jit, static_argnums=2)
def _independent_symbols(key: PRNGKeyArray, probabilities: Array, horizon: int) -> Array:
    logits = jnp.log(probabilities)[:, None]
    return jax.random.categorical(key, logits, shape=(len(probabilities), horizon)).astype(jnp.int32)


@partial(jax.jit, static_argnums=2)
def _chain_symbols(key: PRNGKeyArray, transitions: Array, horizon: int) -> Array:
    first_key, key = jax.random.split(key)
    batch, symbols, _ = transitions.shape
    logits, places = jnp.log(transitions), jnp.arange(batch)

    def following(symbol: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        drawn = jax.random.categorical(key, logits[places, symbol]).astype(jnp.int32)
        return drawn, drawn

    first = jax.random.randint(first_key, (batch,), 0, symbols, jnp.int32)
    others = jax.lax.scan(following, first, jax.random.split(key, horizon - 1))[1]
    return jnp.concatenate([first[:, None], others.T], 1)
