"""A reduced transformer with scores by positions and by symbols, its training, and its losses beside those of formulas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.processes import MarkovTree, NextToken
from mesascope.theory import nichani2024 as theory

from .._recorded import recorded_models
from .._runs import Seeds, seeds_of
from .._still_falling import halves

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
        """The start of the theory's descent (second-hand): A^(1) = 0, A^(2) = I."""
        size = process.horizon - 1
        return cls(jnp.zeros((size, size)), jnp.eye(process.states), floor)

    def first_attention(self, tokens: int | None = None) -> Array:
        """softmax_j(A^(1)_ij) over j ≤ i, shape (n, n)."""
        size = len(self.positions) if tokens is None else tokens
        return causal_softmax(self.positions[:size, :size])

    def second_attention(self, symbols: Any) -> Array:
        """What every query t gives the positions i ≤ t: symbols (…, n) → (…, n, n)."""
        one_hot = jax.nn.one_hot(symbols, len(self.symbols), dtype=self.symbols.dtype)
        parents = self.first_attention(one_hot.shape[-2]) @ one_hot
        return causal_softmax(jnp.einsum("...ta,ab,...ib->...ti", one_hot, self.symbols, parents))

    def predictions(self, symbols: Any) -> Array:
        """Logits log(f + ε) for context lengths 2 … n: symbols (…, n) → (…, n − 1, S)."""
        one_hot = jax.nn.one_hot(symbols, len(self.symbols), dtype=self.symbols.dtype)
        return jnp.log(self.second_attention(symbols) @ one_hot + self.floor)[..., 1:, :]


def causal_softmax(scores: Array) -> Array:
    visible = np.tri(scores.shape[-1], dtype=bool)
    return jax.nn.softmax(jnp.where(visible, scores, -jnp.inf))


class Symbols(Seeds):
    """How many symbols there are, and how concentrated their transitions."""

    states: int = 10
    alpha: float = 0.1


class Graphs(Symbols):
    """Graphs of this size."""

    positions: int = 20


class Training(Symbols):
    """The ε of the read-out, and how the reduced model is trained."""

    floor: float = 0.1
    rate: float = 0.1
    steps: int = 250
    batch: int = 128


def random_graphs(settings: Graphs) -> list[MarkovTree]:
    """One random graph a seed, numbered like it."""
    size, states, alpha = settings.positions, settings.states, settings.alpha
    return [MarkovTree.random(size, states, alpha, seed) for seed in seeds_of(settings)]


def trained(processes: Sequence[MarkovTree], settings: Training) -> list[ReducedTransformer]:
    """One model a process, each with a seed of its own, all from `ReducedTransformer.start`."""
    return [end for _, end in _courses(processes, settings)]


def half_trained(processes: Sequence[MarkovTree], settings: Training) -> list[ReducedTransformer]:
    """The same models half way through their training."""
    return [middle for middle, _ in _courses(processes, settings)]


def _courses(
    processes: Sequence[MarkovTree], settings: Training
) -> list[tuple[ReducedTransformer, ReducedTransformer]]:
    training = settings.floor, settings.rate, settings.steps, settings.batch
    pairs = zip(processes, seeds_of(settings), strict=True)
    return [_course(process, seed, *training) for process, seed in pairs]


@cache  # several claims look at the same models
def _course(
    process: MarkovTree, seed: int, floor: float, rate: float, steps: int, batch: int
) -> tuple[ReducedTransformer, ReducedTransformer]:
    """One model half way and at the end of its training."""
    found = recorded_models(
        lambda key: ReducedTransformer.start(process, floor),
        process.traced(),  # compiled once for all graphs of one size
        NextToken.last(process.horizon),
        [seed],
        halves(steps),
        optimizer=Optimizer("adam", rate),
        batch=batch,
        held_out=2,
    )
    (middle,), (end,) = (found[number] for number in halves(steps))
    return middle, end


def drawn(process: MarkovTree, count: int, *names: str, seed: int) -> np.ndarray:
    """Fresh sequences with their targets, shape (count, T + 1)."""
    return np.asarray(process.sample(named_key(seed, PAPER, *names), process.horizon, count))


def cross_entropies(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """−log of the probability of every target, in nats, shape (count,)."""
    return np.asarray(-np.log(np.take_along_axis(probabilities, targets[:, None], 1)[:, 0]))


def with_floor(frequencies: np.ndarray, floor: float) -> np.ndarray:
    """(f + ε)/(1 + Sε), what the softmax of log(f + ε) is."""
    return (frequencies + floor) / (1 + frequencies.shape[-1] * floor)


def posterior_losses(process: MarkovTree, sample: np.ndarray) -> np.ndarray:
    """−log of what the posterior mean gives the target of every sequence (count, T + 1), in nats."""
    mean = theory.posterior_mean(process.graph, sample[:, :-1], process.states, process.alpha)
    return cross_entropies(mean, sample[:, -1])


def counted_losses(process: MarkovTree, sample: np.ndarray, sharpness: float, floors: Any) -> np.ndarray:
    """The same of attention along the graph, with β and every ε, shape (floors, count)."""
    found = theory.matched_frequencies(process.graph, sample[:, :-1], process.states, sharpness)
    return np.stack([cross_entropies(with_floor(found, floor), sample[:, -1]) for floor in floors])


def best_on_grid(grid: Sequence[Any], losses: Any) -> Any:
    """The entry of a grid with the least loss.

    Args:
        grid: every combination that was tried.
        losses: as many.
    """
    return grid[int(np.argmin(losses))]


def model_probabilities(model: Any, symbols: np.ndarray) -> np.ndarray:
    """The probabilities after the whole context: symbols (count, T) → (count, S)."""
    return np.asarray(jax.nn.softmax(_last(model, jnp.asarray(symbols))))


@eqx.filter_jit
def _last(model: Any, symbols: Array) -> Array:
    return jax.lax.map(
        lambda one: model.predictions(one)[-1], symbols, batch_size=min(1000, symbols.shape[0])
    )
