"""The model of the authors' program, with all its weights free, trained for far fewer steps than theirs."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.dynamics import Optimizer
from mesascope.processes import MarkovTree

from .._claim import Claim, Finding, presets
from .._intervals import below, mean_intervals
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall
from ._model import (
    PAPER,
    Graphs,
    Judging,
    Watched,
    causal_softmax,
    columns,
    finds_parents,
    losses_of,
    mean_attention,
    split_sample,
    trained_halves,
)


class FullTransformer(eqx.Module):
    """Two layers that append what they attend to: z ↦ (z, softmax(z A zᵀ) z), logits z W; all weights start at 0.

    Attributes:
        first: A of the first layer on token and position, shape (S + T, S + T).
        second: A of the second, twice as wide.
        readout: W, shape (4(S + T), S).
    """

    first: Array
    second: Array
    readout: Array

    @classmethod
    def start(cls, process: MarkovTree) -> FullTransformer:
        """All weights 0."""
        width = process.states + process.horizon - 1
        return cls(
            jnp.zeros((width, width)),
            jnp.zeros((2 * width, 2 * width)),
            jnp.zeros((4 * width, process.states)),
        )

    def first_attention(self, symbols: Any) -> Array:
        """The attention of position i to positions j ≤ i in the first layer: symbols (…, n) → (…, n, n)."""
        return _attention(self._embedded(symbols), self.first)

    def predictions(self, symbols: Any) -> Array:
        """Logits for context lengths 2 … n: symbols (…, n) → (…, n − 1, S)."""
        stream = self._embedded(symbols)
        for scores in (self.first, self.second):
            stream = jnp.concatenate([stream, _attention(stream, scores) @ stream], -1)
        return (stream @ self.readout)[..., 1:, :]

    def _embedded(self, symbols: Any) -> Array:
        states, tokens = self.readout.shape[-1], jnp.shape(symbols)[-1]
        one_hot = jax.nn.one_hot(symbols, states, dtype=self.first.dtype)
        places = jnp.eye(len(self.first) - states, dtype=self.first.dtype)[:tokens]
        return jnp.concatenate(
            [one_hot, jnp.broadcast_to(places, (*one_hot.shape[:-1], places.shape[-1]))], -1
        )


def _attention(stream: Array, scores: Array) -> Array:
    return causal_softmax(stream @ scores @ jnp.swapaxes(stream, -1, -2))


class _Training(Graphs, Judging):
    method: str = "adam"
    schedule: str = "cosine"
    rate: float = 0.02
    steps: int = 600
    batch: int = 128
    seed: int = 10
    floor: float = 0.1
    sharpness: tuple[int, ...] = (4, 6, 8, 10, 12, 15, 20, 30, 60)
    chosen_on: int = 2000
    sequences: int = 5000


def _process(settings: _Training) -> MarkovTree:
    """Chains, the program's default."""
    return MarkovTree.chain(settings.positions, settings.states, settings.alpha)


@shared(_Training)
def _trainings(settings: _Training) -> list[Watched]:
    """Attention and losses on fresh sequences, seed by seed; the losses are `Losses`."""
    process, found = _process(settings), []
    optimizer = Optimizer(settings.method, settings.rate, settings.schedule)
    for seed in seeds_of(settings):
        sizes = (settings.steps, settings.batch)
        models = trained_halves(FullTransformer.start, process, seed, optimizer, *sizes)
        samples = split_sample(process, settings, "full model", seed=seed)
        attention = np.asarray(mean_attention(models[1], jnp.asarray(samples[0][:, :-1])), float)
        losses = losses_of(process, models, samples, settings.sharpness, settings.floor)
        found.append(Watched(attention, losses))
    return found


def _finds(settings: _Finds) -> Finding:
    """First-layer attention of trained models on the parents."""
    process = _process(settings)
    title = "The graph in the first layer of the authors' model"
    rows = _trainings(settings)
    return finds_parents(rows, process, settings.mean, "full-model", title, parents=process.graph)


def _nears(settings: _Training) -> Finding:
    """Losses of trained models beside attention along the graph with a fixed ε, and the posterior mean."""
    losses = columns([row.losses for row in _trainings(settings)])
    above_bayes = losses.model - losses.bayes
    means, intervals = mean_intervals(
        {"above_the_construction": losses.model - losses.construction, "above_bayes": above_bayes}
    )
    return Finding(
        {**means, "construction_above_bayes": float((losses.construction - losses.bayes).mean())},
        {"above_the_construction": "below 0"},
        None,
        below(intervals["above_the_construction"], 0.0),
        {
            "intervals_95": intervals,
            "each_seed": above_bayes.tolist(),
            "fallen_in_the_second_half": fall(losses.half_trained - losses.bayes, above_bayes),
            "sharpness": losses.sharpness,
            "meaning": "nats, differences on the same sequences, one entry per seed",
        },
    )


class _Finds(_Training):
    mean: float = 0.837


_AUTHORS: dict[str, Any] = {"method": "sgd", "rate": 1.0, "steps": 2**17, "batch": 1024, "sequences": 100_000}
_COST = "about 8 h"
_HISTORY = (
    "Tried before with random graphs, seeds 0 to 4, 500 to 1200 steps of Adam with rates from 0.02 to 0.05: one of the five "
    "graphs was not found by any of these trainings. The claim then turned to chains, the program's default. There, seeds 0 "
    "to 2 were looked at with rates from 0.01 to 0.02 and 500 and 700 steps; with a constant rate the loss did not fall below "
    "that of fixed ε, with a cosine it did. The seeds of this claim, 10 to 14, were not looked at."
)

CLAIMS = (
    Claim(
        id=f"{PAPER}/full-model",
        title="The authors' model, trained on chains, looks at the token before",
        statement=(
            "Trained on chains with all weights free and from 0, the authors' model attends from every position of its first "
            "layer most to the one before it."
        ),
        source=(
            "nichani2024, abstract, and Figures 2 and 6 (authors' code, catformer.py:47-82 and single_parent.py:15-25); the "
            "threshold is what many_graphs.ipynb, cell 5, prints for three symbols"
        ),
        origin="paper",
        evidence="measured, reduced",
        full_evidence="measured at the paper's setting",
        settings=presets(_Finds(), **_AUTHORS),
        check=_finds,
        criterion=(
            "Trained on chains, the program's default, every position must attend most to the one before it, and by the 95 % "
            "interval over seeds the mean must exceed 0.837, what the authors' own notebook prints for 20 graphs of three "
            "symbols."
        ),
        history=_HISTORY,
        cost=_COST,
        papers_setting=_COST,
    ),
    Claim(
        id=f"{PAPER}/full-model-loss",
        title="The authors' model comes nearer to Bayes than attention with fixed ε",
        statement=(
            "The authors' model, which learns its read-out, trains to a lower loss than attention along the known graph has "
            "with ε = 0.1 fixed, the best that our reduced model does."
        ),
        source=("nichani2024, model of the authors' code, catformer.py:47-82; the comparison is ours"),
        origin="ours",
        evidence="measured, reduced",
        settings=presets(_Training(), **_AUTHORS),
        check=_nears,
        criterion=(
            "The 95 % interval over seeds of the difference of losses on the same sequences must lie below 0; β is the best, "
            "on sequences of its own, searched on a grid and refined inside; if it is at an end of the grid, nothing is "
            "decided. How far above Bayes the loss is, and how fast it still falls, is told."
        ),
        history=_HISTORY,
        cost=_COST,
    ),
)
