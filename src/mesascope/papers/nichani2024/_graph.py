"""The graph in the first layer: by construction, in the first gradient, and after training; chains and induction heads."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
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
from mesascope.records import Figure, Line, Panel, Points
from mesascope.theory import nichani2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._identity import identity
from .._intervals import above, mean_intervals
from ._model import (
    PAPER,
    Graphs,
    ReducedTransformer,
    Training,
    drawn,
    graph_figure,
    on_parents,
    random_graphs,
    trained,
)


def softmax_transformer(weights: theory.DisentangledTransformer) -> SequenceModel:
    """A construction as two softmax layers on a residual stream; predictions are probabilities."""
    embedding = WithPositions(
        Projected(OneHot(len(weights.readout)), weights.embedding), LearnedPositions(weights.positions)
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
            scores = theory.attention_scores(process.graph, states, settings.first, sharpness)
            model = softmax_transformer(theory.disentangled_transformer(scores))
            counted = theory.matched_frequencies(process.graph, symbols, states, sharpness)
            name = f"T = {size}, S = {states}, β = {sharpness}"
            errors[name] = float(np.max(np.abs(np.asarray(model(symbols)) - counted)))
    return identity(errors, settings.tolerance)


def _chains(settings: _Chains) -> Finding:
    """Two softmax layers with a head for every parent against counting along chains of several orders."""
    errors: dict[str, float] = {}
    for order, size, states in settings.chains:
        symbols = np.random.default_rng(order).integers(0, states, (settings.sequences, size))
        for sharpness in settings.sharpness:
            weights = theory.chain_transformer(order, size, states, settings.first, sharpness)
            counted = theory.matched_contexts(symbols, states, order, sharpness)
            name = f"order {order}, T = {size}, S = {states}, β = {sharpness}"
            errors[name] = float(np.max(np.abs(np.asarray(softmax_transformer(weights)(symbols)) - counted)))
    return identity(errors, settings.tolerance)


def _first_gradient(settings: _FirstGradient) -> Finding:
    """Whether the first step of descent raises the parent most in every row of A^(1)."""
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
    attention = [np.asarray(model.first_attention(), float) for _, model in trained(processes, settings)]
    found, shares = zip(*map(on_parents, processes, attention), strict=True)
    each = {"mean": [float(one.mean()) for one in found], "least": [float(one.min()) for one in found]}
    means, intervals = mean_intervals(each)
    children = (np.nonzero(process.adjacency())[0] for process in processes)
    parts = {
        "in the mean": above(intervals["mean"], settings.mean),
        "at every position": above(intervals["least"], settings.least),
        "every parent is attended to most": verdict_if(min(shares) == 1),
    }
    figure = graph_figure("The graph in the first layer", "Trained attention", processes[0], attention[0])
    return Finding.of_parts(
        {
            "attention_to_parents": means["mean"],
            "least_of_all_positions": means["least"],
            "parents_found": min(shares),
        },
        {
            "attention_to_parents": f"above {settings.mean}",
            "least_of_all_positions": f"above {settings.least}",
            "parents_found": 1.0,
        },
        None,
        parts,
        {
            "intervals_95": intervals,
            "each_graph": each,
            "parents": [process.graph for process in processes],
            "looking_at_all_alike": [float(np.mean(1 / (one + 1))) for one in children],
        },
        {"adjacency": figure},
    )


def _induction(settings: _Induction) -> Finding:
    """Attention of trained models on sequences of independent uniform symbols."""
    size, states = settings.positions, settings.states
    chains = [MarkovTree.chain(size, states, settings.alpha)] * settings.seeds
    key = named_key(settings.seed, "induction")
    symbols = jax.random.randint(key, (settings.sequences, size), 0, states)
    s = np.asarray(symbols)
    after = np.concatenate([np.zeros((len(s), 1), bool), s[:, :-1] == s[:, -1:]], 1)
    seen = after.any(1)
    models = [end for _, end in trained(chains, settings)]
    on_target = [float(np.mean(np.sum(_last_attention(model, symbols) * after, 1)[seen])) for model in models]
    before = np.array([np.diagonal(model.first_attention(), -1) for model in models])[:, :-1]
    means, intervals = mean_intervals({"matched": on_target, "copied": before.mean(1)})
    alike = float(after[seen].mean())
    parts = {
        "the first layer looks at the token before": above(intervals["copied"], settings.copied),
        "the second looks at what followed the last symbol": above(intervals["matched"], settings.matched),
    }
    return Finding.of_parts(
        {
            "attention_after_the_last_symbol": means["matched"],
            "first_layer_to_the_token_before": means["copied"],
        },
        {
            "attention_after_the_last_symbol": f"above {settings.matched}; at all positions alike: {alike:.2g}",
            "first_layer_to_the_token_before": f"above {settings.copied}",
        },
        None,
        parts,
        {
            "intervals_95": intervals,
            "each_seed": on_target,
            "sequences_in_which_the_last_symbol_was_seen_before": int(seen.sum()),
        },
        {"induction-head": _chain_figure(before, settings)},
    )


@eqx.filter_jit
def _last_attention(model: ReducedTransformer, symbols: Array) -> Array:
    """The attention of the last position in the second layer, shape (count, T)."""
    return jax.lax.map(
        lambda one: model.second_attention(one)[-1], symbols, batch_size=min(1000, symbols.shape[0])
    )


def _chain_figure(before: np.ndarray, settings: _Induction) -> Figure:
    places = np.arange(2, before.shape[1] + 2)
    middle, spread = (before.max(0) + before.min(0)) / 2, (before.max(0) - before.min(0)) / 2
    panel = Panel(
        title=f"T = {settings.positions}, S = {settings.states}",
        xlabel="position",
        ylabel="attention to the token before",
        traces=(
            Points(x=places, y=middle, yerr=spread, label="trained, all seeds"),
            Line(x=places, y=1 / places, label="looking at all tokens alike", series="theory"),
        ),
    )
    return Figure(title="Chains: the first layer looks at the token before", panels=(panel,))


class _Construction(Settings):
    sharpness: tuple[int, ...]
    graphs: tuple[tuple[int, int, int], ...] = ((6, 3, 0), (20, 10, 1))
    first: int = 60
    alpha: float = 0.1
    sequences: int = 500
    tolerance: float = 1e-12


class _Chains(Settings):
    chains: tuple[tuple[int, int, int], ...] = ((2, 20, 3), (3, 40, 2), (2, 32, 5))
    sharpness: tuple[int, ...] = (3, 60)
    first: int = 60
    sequences: int = 500
    tolerance: float = 1e-12


class _FirstGradient(Graphs):
    floor: float = 0.1
    sequences: int = 5000
    least_z: float = 4.0


class _Adjacency(Graphs, Training):
    mean: float = 0.97
    least: float = 0.9


class _Induction(Graphs, Training):
    sequences: int = 5000
    copied: float = 0.97
    matched: float = 0.9


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
        id=f"{PAPER}/several-parents",
        title="A head for every parent, and a comparison, count contexts of chains",
        statement="""Let head h of the first layer copy the symbol h positions before, and the second layer compare these k
            symbols with the last k: symbols are predicted with weights e^{βm} if m agree.""",
        source="""derived here; nichani2024 trains models with a head for each of two parents (authors' code,
            multi_parent.ipynb)""",
        origin="ours",
        evidence="exact",
        settings=presets(_Chains()),
        check=_chains,
        criterion=f"For orders 2 and 3, β = 3 and 60; the first k positions count by fractions. {_IDENTITY}",
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
        history="The graphs of seeds 0 to 2 were looked at before there were five.",
        cost="about 30 min",
        papers_setting="about 30 min",
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
        papers_setting="about 8 h",
    ),
    Claim(
        id=f"{PAPER}/induction-head",
        title="Trained on Markov chains, the transformer is an induction head",
        statement=(
            "Trained on in-context Markov chains, the transformer becomes an induction head: its first layer looks at the "
            "token before, its second at what followed earlier occurrences of the last symbol."
        ),
        source="nichani2024, abstract; chains: authors' code, single_parent.py:29-30; thresholds and uniform symbols are ours",
        origin="paper",
        evidence="measured, another model",
        settings=presets(_Induction(), rate=0.05, steps=2000, batch=1024, seeds=10),
        check=_induction,
        criterion=(
            "On uniform symbols that no chain made, so that nothing else tells them apart, 95 % intervals over seeds must put "
            "these shares of the attention above 0.97 and 0.9; looking at all alike gives a tenth in the mean, and a ninth."
        ),
        history="An earlier version took three seeds.",
        cost="about 20 min",
        papers_setting="about 8 h",
    ),
)
