"""The paper's reduced transformer, its training, and its losses beside those of formulas."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.processes import MarkovTree, NextToken

from .._claim import Settings
from .._runs import trained_models

PAPER = "nichani2024"


class ReducedTransformer(eqx.Module):
    """Two layers of attention with scores by positions and by symbols; probabilities f become log(f + ε).

    Attributes:
        positions: A^(1), shape (T, T).
        symbols: A^(2), shape (S, S).
        floor: ε > 0, so that no symbol is impossible.
    """

    positions: Array
    symbols: Array
    floor: float = eqx.field(static=True)

    @classmethod
    def start(cls, process: MarkovTree, floor: float) -> ReducedTransformer:
        """The start of the paper's descent: A^(1) = 0, A^(2) = I."""
        size = process.horizon - 1
        return cls(jnp.zeros((size, size)), jnp.eye(process.states), floor)

    def first_attention(self, tokens: int | None = None) -> Array:
        """softmax_j(A^(1)_ij) over j ≤ i, shape (n, n)."""
        size = len(self.positions) if tokens is None else tokens
        return _causal_softmax(self.positions[:size, :size])

    def second_attention(self, symbols: Any) -> Array:
        """What every query t gives the positions i ≤ t: symbols (…, n) → (…, n, n)."""
        one_hot = jax.nn.one_hot(symbols, len(self.symbols), dtype=self.symbols.dtype)
        parents = self.first_attention(one_hot.shape[-2]) @ one_hot
        return _causal_softmax(jnp.einsum("...ta,ab,...ib->...ti", one_hot, self.symbols, parents))

    def predictions(self, symbols: Any) -> Array:
        """Logits log(f + ε) for context lengths 2 … n: symbols (…, n) → (…, n − 1, S)."""
        one_hot = jax.nn.one_hot(symbols, len(self.symbols), dtype=self.symbols.dtype)
        return jnp.log(self.second_attention(symbols) @ one_hot + self.floor)[..., 1:, :]


def _causal_softmax(scores: Array) -> Array:
    visible = np.tri(scores.shape[-1], dtype=bool)
    return jax.nn.softmax(jnp.where(visible, scores, -jnp.inf))


def graph(settings: Settings) -> MarkovTree:
    """The process of the claim: a random graph, or the chain."""
    size, states, alpha = settings["positions"], settings["states"], settings["alpha"]
    if settings["graph"] == "chain":
        return MarkovTree.chain(size, states, alpha)
    return MarkovTree.random(size, states, alpha, settings["graph"])


def trained(process: MarkovTree, settings: Settings) -> list[ReducedTransformer]:
    """One model per seed, all from the paper's start: seeds differ in their sequences."""
    names = ("floor", "rate", "steps", "batch", "seed", "seeds")
    return _trained_once(process, *(settings[name] for name in names))


@cache  # two claims look at the same models
def _trained_once(
    process: MarkovTree, floor: float, rate: float, steps: int, batch: int, seed: int, seeds: int
) -> list[ReducedTransformer]:
    return trained_models(
        lambda key: ReducedTransformer.start(process, floor),
        process,
        NextToken.last(process.horizon),
        [seed + number for number in range(seeds)],
        optimizer=Optimizer("adam", rate),
        steps=steps,
        batch=batch,
        held_out=2,
    )


def drawn(process: MarkovTree, count: int, *names: str, seed: int) -> np.ndarray:
    """Fresh sequences with their targets, shape (count, T + 1)."""
    return np.asarray(_sampled(process, named_key(seed, PAPER, *names), count))


@partial(jax.jit, static_argnums=(0, 2))
def _sampled(process: MarkovTree, key: Array, count: int) -> Array:
    return process.sample(key, process.horizon, count)


def cross_entropies(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """−log of the probability of every target, in nats, shape (count,)."""
    return np.asarray(-np.log(np.take_along_axis(probabilities, targets[:, None], 1)[:, 0]))


def with_floor(frequencies: np.ndarray, floor: float) -> np.ndarray:
    """(f + ε)/(1 + Sε), what the softmax of log(f + ε) is."""
    return (frequencies + floor) / (1 + frequencies.shape[-1] * floor)


def model_probabilities(model: ReducedTransformer, symbols: np.ndarray) -> np.ndarray:
    """The probabilities after the whole context: symbols (count, T) → (count, S)."""
    return np.asarray(jax.nn.softmax(_last(model, jnp.asarray(symbols))))


@eqx.filter_jit
def _last(model: ReducedTransformer, symbols: Array) -> Array:
    return jax.lax.map(
        lambda one: model.predictions(one)[-1], symbols, batch_size=min(1000, symbols.shape[0])
    )
