"""The model of the authors' program, with all its weights free, trained for much fewer steps than theirs."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.dynamics import Optimizer
from mesascope.processes import MarkovTree, NextToken
from mesascope.records import Figure, Heatmap, Panel

from .._claim import Claim, Finding, presets, verdict_if
from .._intervals import above, below, mean_interval
from .._recorded import recorded_models
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall, halves
from ._model import (
    PAPER,
    Graphs,
    best_on_grid,
    causal_softmax,
    counted_losses,
    cross_entropies,
    drawn,
    model_probabilities,
    posterior_losses,
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
        """What position i gives positions j ≤ i in the first layer: symbols (…, n) → (…, n, n)."""
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


class _Training(Graphs):
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


@shared(_Training)
def _trainings(settings: _Training) -> list[dict[str, Any]]:
    """Attention of the first layer and losses on fresh sequences, seed by seed; chains, the program's default."""
    process = MarkovTree.chain(settings.positions, settings.states, settings.alpha)
    return [_trained(process, seed, settings) for seed in seeds_of(settings)]


def _trained(process: MarkovTree, seed: int, settings: _Training) -> dict[str, Any]:
    training = (settings.method, settings.schedule, settings.rate, settings.steps, settings.batch)
    middle, end = full_trained(process, seed, *training)
    sample = drawn(process, settings.chosen_on + settings.sequences, "full model", seed=seed)
    chosen, judged = np.split(sample, [settings.chosen_on])
    floors = [settings.floor]
    tried = [counted_losses(process, chosen, beta, floors).mean() for beta in settings.sharpness]
    beta = best_on_grid(settings.sharpness, tried)
    attention = _mean_attention(end, chosen[:, :-1])
    children = [child for child, parent in enumerate(process.graph) if parent is not None]
    sources = [parent for parent in process.graph if parent is not None]
    halfway, last = (
        float(cross_entropies(model_probabilities(model, judged[:, :-1]), judged[:, -1]).mean())
        for model in (middle, end)
    )
    return {
        "parents": process.graph,
        "attention": attention,
        "on_parents": attention[children, sources].tolist(),
        "parents_found": float((attention.argmax(-1)[children] == sources).mean()),
        "half_trained": halfway,
        "model": last,
        "construction": float(counted_losses(process, judged, beta, floors).mean()),
        "bayes": float(posterior_losses(process, judged).mean()),
        "sharpness": beta,
    }


@cache  # two claims look at the same models
def full_trained(
    process: MarkovTree, seed: int, method: str, schedule: str, rate: float, steps: int, batch: int
) -> tuple[FullTransformer, FullTransformer]:
    """One model half way and at the end of its training."""
    found = recorded_models(
        lambda key: FullTransformer.start(process),
        process.traced(),
        NextToken.last(process.horizon),
        [seed],
        halves(steps),
        optimizer=Optimizer(method, rate, schedule),
        batch=batch,
        held_out=2,
    )
    (middle,), (end,) = (found[number] for number in halves(steps))
    return middle, end


@eqx.filter_jit
def _attention_of(model: FullTransformer, symbols: Array) -> Array:
    return jnp.mean(model.first_attention(symbols), 0)


def _mean_attention(model: FullTransformer, symbols: np.ndarray) -> np.ndarray:
    """Mean over sequences of what the first layer attends to, shape (T, T)."""
    return np.asarray(_attention_of(model, jnp.asarray(symbols)), float)


def _finds(settings: _Finds) -> Finding:
    """First-layer attention of trained models on the parents."""
    rows = _trainings(settings)
    mean, interval = mean_interval([np.mean(row["on_parents"]) for row in rows])
    found = min(row["parents_found"] for row in rows)
    parts = {
        "in the mean": above(interval, settings.mean),
        "every parent is attended to most": verdict_if(found == 1),
    }
    return Finding.of_parts(
        {
            "attention_to_parents": mean,
            "least_of_all_positions": min(min(row["on_parents"]) for row in rows),
            "parents_found": found,
        },
        {"attention_to_parents": f"above {settings.mean}", "parents_found": 1.0},
        None,
        parts,
        {
            "interval_95": interval,
            "each_seed": [row["on_parents"] for row in rows],
            "parents": rows[0]["parents"],
        },
        {"full-model": _figure(rows[0])},
    )


def _figure(row: dict[str, Any]) -> Figure:
    parents = row["parents"]
    graph = np.zeros((len(parents), len(parents)))
    for child, parent in enumerate(parents):
        graph[child, child if parent is None else parent] = 1.0
    panels = (("Latent graph (roots: diagonal)", graph), ("Trained attention, mean", row["attention"]))
    return Figure(
        title="The graph in the first layer of the authors' model",
        panels=tuple(
            Panel(
                title=title,
                xlabel="position attended to, $j$",
                ylabel="position $i$",
                traces=(Heatmap(z=z, colorlabel="attention", limits=(0.0, 1.0)),),
            )
            for title, z in panels
        ),
        caption="Rows of roots have no parent: there attention may do what it likes.",
    )


def _nears(settings: _Training) -> Finding:
    """Losses of trained models beside attention along the graph with a fixed ε, and the posterior mean."""
    rows = _trainings(settings)
    model, half, construction, bayes = (
        np.array([row[name] for row in rows]) for name in ("model", "half_trained", "construction", "bayes")
    )
    below_it, interval = mean_interval(model - construction)
    gap, gap_interval = mean_interval(model - bayes)
    return Finding(
        {
            "above_the_construction": below_it,
            "above_bayes": gap,
            "construction_above_bayes": float((construction - bayes).mean()),
        },
        {"above_the_construction": "below 0"},
        None,
        below(interval, 0.0),
        {
            "intervals_95": {"above_the_construction": interval, "above_bayes": gap_interval},
            "each_seed": (model - bayes).tolist(),
            "fallen_in_the_second_half": fall(half - bayes, model - bayes),
            "sharpness": [row["sharpness"] for row in rows],
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
        title="The authors' model puts the graph into its first layer",
        statement=(
            "With the authors' model, all of whose weights are free and start at 0, training encodes the latent causal graph "
            "in the first attention layer."
        ),
        source=(
            "nichani2024, abstract, and Figures 2 and 6 (authors' code, catformer.py:47-82 and single_parent.py:15-25); the "
            "threshold is what many_graphs.ipynb, cell 5, prints for three symbols"
        ),
        origin="paper",
        evidence="measured, reduced",
        settings=presets(_Finds(), **_AUTHORS),
        check=_finds,
        criterion=(
            "Trained on chains, the program's default, every position must attend most to the one before it, and by the 95 % "
            "interval over seeds the mean must exceed 0.837, what the authors' own notebook prints for 20 graphs of three "
            "symbols."
        ),
        history=_HISTORY,
        cost=_COST,
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
            "The 95 % interval over seeds of the difference of losses on the same sequences must lie below 0; β is the best "
            "of a grid, on sequences of its own. How far above Bayes the loss is, and how fast it still falls, is told."
        ),
        history=_HISTORY,
        cost=_COST,
    ),
)
