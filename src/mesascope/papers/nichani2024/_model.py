"""A reduced transformer with scores by positions and by symbols, its training, and its losses beside those of formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.processes import MarkovTree, NextToken
from mesascope.records import Figure
from mesascope.theory import nichani2024 as theory

from .._claim import Finding, verdict_if
from .._figures import matrix_panels
from .._intervals import above, mean_interval
from .._minimized import bracketed
from .._prompts import losses_in_batches
from .._recorded import recorded_models
from .._runs import Model, Seeds, seeds_of
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
        """The attention of position t to positions i ≤ t in the second layer: symbols (…, n) → (…, n, n)."""
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
    """The number of symbols, and the parameter of the prior of their transitions."""

    states: int = 10
    alpha: float = 0.1


class Graphs(Symbols):
    """The size of the graphs."""

    positions: int = 20


class Training(Symbols):
    """The ε of the read-out, and how the reduced model is trained."""

    floor: float = 0.1
    rate: float = 0.1
    steps: int = 250
    batch: int = 128


def random_graphs(settings: Graphs) -> list[MarkovTree]:
    """One random graph a seed, drawn with it."""
    size, states, alpha = settings.positions, settings.states, settings.alpha
    return [MarkovTree.random(size, states, alpha, seed) for seed in seeds_of(settings)]


def trained(
    processes: Sequence[MarkovTree], settings: Training
) -> list[tuple[ReducedTransformer, ReducedTransformer]]:
    """One model a process half way and at the end of its training, each with a seed of its own."""
    optimizer, sizes = Optimizer("adam", settings.rate), (settings.steps, settings.batch)
    return [
        trained_halves(ReducedTransformer.start, process, seed, optimizer, *sizes, settings.floor)
        for process, seed in zip(processes, seeds_of(settings), strict=True)
    ]


@cache  # several claims look at the same models
def trained_halves(
    start: Callable[..., Model],
    process: MarkovTree,
    seed: int,
    optimizer: Optimizer,
    steps: int,
    batch: int,
    *more: float,
) -> tuple[Model, Model]:
    """One model, from start(process, *more), half way and at the end of its training."""
    found = recorded_models(
        lambda key: start(process, *more),
        process.traced(),  # compiled once for all graphs of one size
        NextToken.last(process.horizon),
        [seed],
        halves(steps),
        optimizer=optimizer,
        batch=batch,
        held_out=2,
    )
    (middle,), (end,) = found.values()
    return middle, end


def graph_figure(title: str, label: str, process: MarkovTree, attention: np.ndarray) -> Figure:
    """The graph of a process beside the attention of a first layer, shape (T, T)."""
    roots = np.diag([1.0 if parent is None else 0.0 for parent in process.graph])
    shown = {"Latent graph (roots: diagonal)": process.adjacency() + roots, label: np.tril(attention)}
    return Figure(
        title=title,
        panels=matrix_panels(
            shown, "position attended to, $j$", "position $i$", colorlabel="attention", limits=(0.0, 1.0)
        ),
        caption="Rows of roots have no parent: there attention may do what it likes.",
    )


def on_parents(process: MarkovTree, attention: np.ndarray) -> tuple[np.ndarray, float]:
    """The attention (T, T) of every position with a parent to it, and the share of these that attend to it most."""
    children, parents = np.nonzero(process.adjacency())
    return attention[children, parents], float((attention.argmax(-1)[children] == parents).mean())


@eqx.filter_jit
def mean_attention(model: Any, symbols: Array) -> Array:
    """The attention of the first layer of a model, mean over sequences (n, T), shape (T, T)."""
    return jnp.mean(model.first_attention(symbols), 0)


class Watched(NamedTuple):
    """The mean attention (T, T) of the first layer of one model, and its losses."""

    attention: np.ndarray
    losses: Any


def finds_parents(
    rows: Sequence[Watched], process: MarkovTree, least: float, figure: str, title: str, **details: Any
) -> Finding:
    """Whether first layers attend to parents most at all positions that have one, and in the mean above `least`.

    Args:
        rows: one entry a seed.
        process: with the graph.
        least: the threshold of the mean.
        figure: its name.
        title: its title.
        **details: more of them.
    """
    on, shares = zip(*(on_parents(process, row.attention) for row in rows), strict=True)
    mean, interval = mean_interval([one.mean() for one in on])
    parts = {
        "in the mean": above(interval, least),
        "every parent is attended to most": verdict_if(min(shares) == 1),
    }
    return Finding.of_parts(
        {
            "attention_to_parents": mean,
            "least_of_all_positions": min(float(one.min()) for one in on),
            "parents_found": min(shares),
        },
        {"attention_to_parents": f"above {least}", "parents_found": 1.0},
        None,
        parts,
        {"interval_95": interval, "each_seed": [one.tolist() for one in on], **details},
        {figure: graph_figure(title, "Trained attention, mean", process, rows[0].attention)},
    )


def drawn(process: MarkovTree, count: int, *names: str, seed: int) -> np.ndarray:
    """Fresh sequences with their targets, shape (count, T + 1)."""
    return np.asarray(process.sample(named_key(seed, PAPER, *names), process.horizon, count))


def cross_entropies(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """−log of the probability of every target, in nats, shape (count,)."""
    return np.asarray(-np.log(np.take_along_axis(probabilities, targets[:, None], 1)[:, 0]))


def posterior_losses(process: MarkovTree, sample: np.ndarray) -> np.ndarray:
    """−log of the posterior mean at the target of every sequence (count, T + 1), in nats."""
    mean = theory.posterior_mean(process.graph, sample[:, :-1], process.states, process.alpha)
    return cross_entropies(mean, sample[:, -1])


def frequencies(process: MarkovTree, sample: np.ndarray, sharpness: float) -> np.ndarray:
    """What attention along the graph reads with β, shape (count, S)."""
    return theory.matched_frequencies(process.graph, sample[:, :-1], process.states, sharpness)


def counted_losses(found: np.ndarray, sample: np.ndarray, floor: float) -> np.ndarray:
    """The same as of the posterior mean for log(f + ε) of frequencies f."""
    # (f + ε)/(1 + Sε) is what the softmax of log(f + ε) is
    return cross_entropies((found + floor) / (1 + found.shape[-1] * floor), sample[:, -1])


class Judging(Seeds):
    """Sequences on which models are judged, and those on which β of the construction is chosen, first on a grid."""

    sharpness: tuple[int, ...]
    chosen_on: int
    sequences: int


def split_sample(process: MarkovTree, settings: Judging, *names: str, seed: int) -> list[np.ndarray]:
    """Fresh sequences to choose β on, and to judge on."""
    sample = drawn(process, settings.chosen_on + settings.sequences, *names, seed=seed)
    return np.split(sample, [settings.chosen_on])


class Losses(NamedTuple):
    """Mean losses on the same sequences, nats, and the β of the construction: of one graph, or one entry a graph."""

    half_trained: Any
    model: Any
    construction: Any
    bayes: Any
    sharpness: Any


def losses_of(
    process: MarkovTree,
    models: tuple[Any, Any],
    samples: list[np.ndarray],
    sharpness: Sequence[int],
    floor: float,
) -> Losses:
    """Of models half way and at the end, of the construction with this ε and the best β, and of the posterior mean."""
    chosen, judged = samples

    def losses(sample: np.ndarray, beta: float) -> np.ndarray:
        return counted_losses(frequencies(process, sample, beta), sample, floor)

    (beta,) = bracketed(lambda beta: float(losses(chosen, beta).mean()), sharpness).point.tolist()
    task = NextToken.last(process.horizon)
    middle, end = (losses_in_batches(model, jnp.asarray(judged), task) for model in models)
    counted, bayes = losses(judged, beta), posterior_losses(process, judged)
    half, last, built, best = (float(one.mean()) for one in (middle, end, counted, bayes))
    return Losses(half, last, built, best, beta)


def columns(rows: Iterable[Losses]) -> Losses:
    """Losses of several graphs, as arrays; β as a list."""
    half, last, built, best, sharpness = zip(*rows, strict=True)
    return Losses(np.array(half), np.array(last), np.array(built), np.array(best), list(sharpness))
