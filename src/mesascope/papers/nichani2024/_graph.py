"""The graph in the first layer: by construction, in the first gradient, and after training."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import (
    Dense,
    LearnedPositions,
    OneHot,
    Projected,
    Residual,
    SequenceModel,
    SoftmaxSelfAttention,
    Stack,
    WithPositions,
)
from mesascope.objectives import sample_losses
from mesascope.processes import MarkovTree, NextToken
from mesascope.records import Figure, Heatmap, Panel
from mesascope.theory import nichani2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._identity import identity
from .._intervals import above, mean_interval
from ._model import PAPER, Graphs, ReducedTransformer, Training, drawn, random_graphs, trained


def softmax_transformer(parents: Any, states: int, first: float, second: float) -> SequenceModel:
    """The construction as two softmax layers on a residual stream; predictions are probabilities."""
    weights = theory.disentangled_transformer(theory.attention_scores(parents, states, first, second))
    embedding = WithPositions(
        Projected(OneHot(states), weights.embedding), LearnedPositions(weights.positions)
    )
    layers = [Residual(SoftmaxSelfAttention(**layer)) for layer in weights.layers]  # type: ignore[arg-type]
    network = Stack(layers)
    return SequenceModel(embedding, network, Dense(weights.readout))


def _construction(settings: _Construction) -> Finding:
    """Two softmax layers against counting along the graph."""
    errors: dict[str, float] = {}
    for size, states, seed in settings.graphs:
        process = MarkovTree.random(size, states, settings.alpha, seed)
        symbols = np.random.default_rng(seed).integers(0, states, (settings.sequences, size))
        for sharpness in settings.sharpness:
            model = softmax_transformer(process.graph, states, settings.first, sharpness)
            counted = theory.matched_frequencies(process.graph, symbols, states, sharpness)
            name = f"T = {size}, S = {states}, β = {sharpness}"
            errors[name] = float(np.max(np.abs(np.asarray(model(symbols)) - counted)))
    return identity(errors, settings.tolerance)


def _first_gradient(settings: _FirstGradient) -> Finding:
    """In every row of A^(1) the first step of descent raises the parent most."""
    scores = {}
    for number, process in enumerate(random_graphs(settings)):
        names = ("first gradient", str(number))
        symbols = drawn(process, settings.sequences, *names, seed=settings.seed)
        start = ReducedTransformer.start(process, settings.floor)
        gradients = np.asarray(_gradients(start, jnp.asarray(symbols), NextToken.last(process.horizon)))
        for child, parent in enumerate(process.graph):
            for other in range(child + 1):
                if parent is not None and other != parent:
                    ahead = gradients[:, child, other] - gradients[:, child, parent]
                    error = ahead.std(ddof=1) / len(ahead) ** 0.5
                    name = f"graph {number}, {child + 1}: {parent + 1} before {other + 1}"
                    scores[name] = float(ahead.mean() / error)
    least = min(scores, key=lambda name: scores[name])
    return Finding(
        {"least_z": scores[least], "pairs": len(scores)},
        {"least_z": f"above {settings.least_z}"},
        None,
        above([scores[least] - settings.least_z, scores[least] + settings.least_z], 0.0),
        {
            "least_of_all": least,
            "median_z": float(np.median(list(scores.values()))),
            "meaning": "z: mean of ∂L/∂A_ij − ∂L/∂A_ip(i) over sequences, in standard errors; positions count from 1",
        },
    )


@eqx.filter_jit
def _gradients(model: ReducedTransformer, symbols: Array, task: NextToken) -> Array:
    """The gradient in A^(1) for every sequence, shape (count, T, T)."""

    def loss(positions: Array, one: Array) -> Array:
        moved = eqx.tree_at(lambda m: m.positions, model, positions)
        return sample_losses(moved, one[None], task)[0]

    return jax.lax.map(lambda one: jax.grad(loss)(model.positions, one), symbols, batch_size=500)


def _adjacency(settings: _Adjacency) -> Finding:
    """First-layer attention of trained models on the graphs of their seeds."""
    processes = random_graphs(settings)
    attention = [np.asarray(model.first_attention(), float) for model in trained(processes, settings)]
    means, least, found, alike = [], [], [], []
    for process, scores in zip(processes, attention, strict=True):
        children = [child for child, parent in enumerate(process.graph) if parent is not None]
        sources = np.array([parent for parent in process.graph if parent is not None])
        on_parents = scores[children, sources]
        means.append(float(on_parents.mean()))
        least.append(float(on_parents.min()))
        found.append(float((scores.argmax(-1)[children] == sources).mean()))
        alike.append(float(np.mean([1 / (child + 1) for child in children])))
    (mean, interval), (lowest, lowest_interval) = mean_interval(means), mean_interval(least)
    parts = {
        "in the mean": above(interval, settings.mean),
        "at every position": above(lowest_interval, settings.least),
        "every parent is attended to most": verdict_if(min(found) == 1),
    }
    return Finding.of_parts(
        {"attention_to_parents": mean, "least_of_all_positions": lowest, "parents_found": min(found)},
        {
            "attention_to_parents": f"above {settings.mean}",
            "least_of_all_positions": f"above {settings.least}",
            "parents_found": 1.0,
        },
        None,
        parts,
        {
            "intervals_95": {"mean": interval, "least": lowest_interval},
            "each_graph": {"mean": means, "least": least},
            "parents": [process.graph for process in processes],
            "looking_at_all_alike": alike,
        },
        {"adjacency": _figure(processes[0], attention[0])},
    )


def _figure(process: MarkovTree, attention: np.ndarray) -> Figure:
    def panel(title: str, z: np.ndarray) -> Panel:
        shown = Heatmap(z=np.tril(z), colorlabel="attention", limits=(0.0, 1.0))
        return Panel(title=title, xlabel="position attended to, $j$", ylabel="position $i$", traces=(shown,))

    roots = np.diag([1.0 if parent is None else 0.0 for parent in process.graph])
    return Figure(
        title="The graph in the first layer",
        panels=(
            panel("Latent graph (roots: diagonal)", process.adjacency() + roots),
            panel("Trained attention", attention),
        ),
        caption="Rows of roots have no parent: there attention may do what it likes.",
    )


class _Construction(Settings):
    sharpness: tuple[int, ...]
    graphs: tuple[tuple[int, int, int], ...] = ((6, 3, 0), (20, 10, 1))
    first: int = 60
    alpha: float = 0.1
    sequences: int = 500
    tolerance: float = 1e-12


class _FirstGradient(Graphs):
    floor: float = 0.1
    seeds: int = 3
    sequences: int = 5000
    least_z: float = 4.0


class _Adjacency(Graphs, Training):
    mean: float = 0.97
    least: float = 0.9


_IDENTITY = (
    "Both sides must agree to 1e-12: rounding of double precision, and the e^−60 = 10⁻²⁶ that the first layer gives to other "
    "positions."
)

CLAIMS = (
    Claim(
        id=f"{PAPER}/construction",
        title="Two layers built from the graph predict by counting its edges",
        statement=(
            "Two layers of softmax attention, the first with large scores at the edges of the graph, the second with large "
            "scores for equal symbols, predict the frequencies of what followed s_T along the graph."
        ),
        source=(
            "nichani2024, the construction beside the main theorem (second-hand); layers that append what they read: authors' "
            "code, catformer.py:77-82"
        ),
        origin="paper, second-hand",
        evidence="exact",
        settings=presets(_Construction(sharpness=(60,))),
        check=_construction,
        criterion=_IDENTITY,
    ),
    Claim(
        id=f"{PAPER}/construction-counted",
        title="The construction with any sharpness, counted",
        statement=(
            "With scores β for equal symbols the construction predicts those frequencies drawn, with weight e^−β, to the "
            "frequencies of all symbols."
        ),
        source="derived here, for the construction of nichani2024 (second-hand)",
        origin="ours",
        evidence="exact",
        settings=presets(_Construction(sharpness=(0, 3))),
        check=_construction,
        criterion=_IDENTITY,
    ),
    Claim(
        id=f"{PAPER}/first-gradient",
        title="The first gradient shows the edges of the graph",
        statement=(
            "At the start, in every row with a parent, the largest entry of the gradient of the first layer's scores is an "
            "edge of the latent graph."
        ),
        source="nichani2024, abstract; the start A⁽¹⁾ = 0, A⁽²⁾ = I is that of the theory (second-hand)",
        origin="paper, second-hand",
        evidence="measured, another model",
        settings=presets(_FirstGradient(), seeds=10, sequences=200_000),
        check=_first_gradient,
        criterion=(
            "Descent must raise the parent's score most in every row with a parent: each of some 150 differences a graph "
            "must lie 4 standard errors over sequences above 0, which chance does to none of them; one as far below does not "
            "meet it."
        ),
        cost="about 30 min",
    ),
    Claim(
        id=f"{PAPER}/adjacency",
        title="Training puts the graph into the first layer",
        statement="Training by gradient descent encodes the latent causal graph in the first attention layer.",
        source=(
            "nichani2024, abstract, and Figures 2, 6 and 9 (authors' code, single_parent.py, many_graphs.ipynb); the "
            "thresholds are ours"
        ),
        origin="paper",
        evidence="measured, another model",
        settings=presets(_Adjacency(), rate=0.05, steps=2000, batch=1024, seeds=10),
        check=_adjacency,
        criterion=(
            "By 95 % intervals over random graphs, each with a seed of its own, attention to the parent must be above 0.97 in "
            "the mean and above 0.9 at the worst position, all but what a softmax leaves; every parent must get the most."
        ),
        history="An earlier version took four graphs.",
        cost="about 20 min",
    ),
)
