"""Random probabilities, and symbols that are drawn with them; compiled; imports JAX.

Symbols are drawn as the largest of log-probabilities plus Gumbel variates, so that one of probability 0 is never drawn, and
rows need not sum to 1 to the last bit. Cumulated sums of rounded numbers ensure neither.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
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


def graph_symbols(
    key: PRNGKeyArray,
    tables: Float[Array, "batch rows S"],
    places: np.ndarray,
    weights: np.ndarray,
    first: np.ndarray,
) -> Int[Array, "batch horizon"]:
    """Draw sequences: symbol i has row first_i + Σ_k weights_ik s_{places_ik} of its table, from 1 on; row 0 is uniform."""
    return _graph_symbols(random_key(key), tables, *map(jnp.asarray, (places, weights, first)))


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


@jax.jit
def _graph_symbols(key: PRNGKeyArray, tables: Array, places: Array, weights: Array, first: Array) -> Array:
    batch, lanes = len(tables), jnp.arange(len(tables))
    logits = jnp.pad(jnp.log(tables), ((0, 0), (1, 0), (0, 0)))

    def drawn(sequences: Array, step: tuple[Array, ...]) -> tuple[Array, None]:
        i, place, weight, begin, key = step
        rows = begin + sequences[:, place] @ weight
        symbol = jax.random.categorical(key, logits[lanes, rows]).astype(jnp.int32)
        return sequences.at[:, i].set(symbol), None

    horizon = len(first)
    steps = jnp.arange(horizon), places, weights, first, jax.random.split(key, horizon)
    return jax.lax.scan(drawn, jnp.zeros((batch, horizon), jnp.int32), steps)[0]
