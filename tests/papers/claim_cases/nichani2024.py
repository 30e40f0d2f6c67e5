"""How the claims of nichani2024 are tested."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mesascope.papers._minimized import Minimum
from mesascope.papers.nichani2024 import _full_model, _graph, _information, _loss, _model, _with_mlp
from mesascope.processes import MarkovTree
from mesascope.theory import nichani2024 as theory

from . import Case, short_grids

TRAINED = {"states": 6, "steps": 150, "seed": 100, "seeds": 3}
SMALL = {**TRAINED, "positions": 12}
JUDGED = {**TRAINED, "chosen_on": 500, "sequences": 5000}
FULL_MODEL = {
    "positions": 10,
    "states": 6,
    "steps": 400,
    "seeds": 3,
    "chosen_on": 1000,
    "sequences": 3000,
}
COUNTED = {"lengths": [40, 320], "seeds": 3, "chosen_on": 200, "sequences": 1000}


def last_child(process):
    return max(i for i, parent in enumerate(process.parents) if parent is not None)


def rewired(process):
    """The same graph but for the last parent, which is another position."""
    parents, child = list(process.parents), last_child(process)
    parents[child] = parents[child] - 1 if parents[child] else 1
    return MarkovTree(parents, process.states, process.alpha)


def drawn_from_another_graph(patch):
    right = _graph.drawn
    patch.setattr(_graph, "drawn", lambda process, *args, **more: right(rewired(process), *args, **more))


def looks_elsewhere(patch):
    """Trained first layers, at the last position with a parent, look one token further back."""
    right = _graph.trained

    def wrong(processes, settings):
        pairs = zip(processes, right(processes, settings), strict=True)
        return [(middle, _turned(end, last_child(process))) for process, (middle, end) in pairs]

    patch.setattr(_graph, "trained", wrong)


def _turned(model, child):
    row = jnp.roll(model.positions[child, : child + 1], -1)
    return eqx.tree_at(lambda m: m.positions, model, model.positions.at[child, : child + 1].set(row))


def sharper(factor):
    """A construction whose second layer has other scores."""

    def break_it(patch):
        right = theory.attention_scores
        patch.setattr(
            theory, "attention_scores", lambda parents, s, one, two: right(parents, s, one, two * factor)
        )

    return break_it


def weaker_first(patch):
    """A construction whose first layer has two fifths of its scores."""
    right = theory.attention_scores
    patch.setattr(theory, "attention_scores", lambda parents, s, one, two: right(parents, s, 0.4 * one, two))


def other_chains(first=1.0, second=1.0):
    """Attention for chains with other scores."""

    def break_it(patch):
        right = theory.chain_transformer
        patch.setattr(
            theory,
            "chain_transformer",
            lambda order, size, m, one, two: right(order, size, m, first * one, second * two),
        )

    return break_it


def computed_again(module, name, patch):
    """What claims share is not taken from the right world."""
    patch.setattr(module, name, getattr(module, name).__wrapped__)


def blurred(patch):
    """Attention whose second layer cannot be sharp: β at most 4."""
    right = theory.matched_frequencies
    patch.setattr(
        theory, "matched_frequencies", lambda parents, s, m, beta: right(parents, s, m, min(beta, 4.0))
    )


def blunter(patch):
    """Trained second layers have two fifths of their scores."""
    computed_again(_loss, "_losses", patch)
    right = _loss.trained
    patch.setattr(
        _loss,
        "trained",
        lambda processes, settings: [
            (middle, eqx.tree_at(lambda m: m.symbols, end, 0.4 * end.symbols))
            for middle, end in right(processes, settings)
        ],
    )


def untrained_where_long(patch):
    """Models of long sequences are those of the start."""
    computed_again(_loss, "_losses", patch)
    right = _loss.trained

    def wrong(processes, settings):
        pairs = right(processes, settings)
        if settings.positions <= SMALL["positions"]:
            return pairs
        starts = (_model.ReducedTransformer.start(process, settings.floor) for process in processes)
        return [(middle, start) for (middle, _), start in zip(pairs, starts, strict=True)]

    patch.setattr(_loss, "trained", wrong)


def first_of_the_grid(patch):
    """The search on a grid stays at its first entry."""
    computed_again(_loss, "_losses", patch)
    for module in (_model, _loss):
        patch.setattr(module, "bracketed", lambda loss, *grids: Minimum(np.array([g[0] for g in grids]), 0.0))


def grid_that_ends_early(patch):
    """The grid of β ends before the best one."""
    computed_again(_loss, "_losses", patch)
    computed_again(_full_model, "_trainings", patch)
    short_grids(_model)(patch)


def half_read_out(patch):
    """Trained read-outs have half their weights."""
    computed_again(_full_model, "_trainings", patch)
    right = _full_model.trained_halves

    def wrong(*args):
        return tuple(eqx.tree_at(lambda m: m.readout, model, 0.5 * model.readout) for model in right(*args))

    patch.setattr(_full_model, "trained_halves", wrong)


def attends_otherwise(module, change):
    """A world in which trained first layers have another mean attention."""

    def break_it(patch):
        if module is _full_model:
            computed_again(module, "_trainings", patch)
        right = module.mean_attention
        patch.setattr(module, "mean_attention", lambda *args: change(np.array(right(*args))))

    return break_it


def trained_on_unrelated_symbols(patch):
    """Transformers with MLPs are trained on sequences without a graph."""
    right = _with_mlp.recorded_models

    def wrong(make, process, *args, **settings):
        roots = MarkovTree((None,) * (process.horizon - 1), process.dim, 0.1)
        return right(make, roots.traced(), *args, **settings)

    patch.setattr(_with_mlp, "recorded_models", wrong)


def one_edge_turned(attention):
    """The last position with a parent, which is the last but one, attends elsewhere."""
    child = len(attention) - 2
    attention[child, : child + 1] = np.roll(attention[child, : child + 1], -1)
    return attention


def spread(attention):
    """A fifth of the attention goes to all earlier positions alike."""
    return 0.8 * attention + 0.2 * np.tri(len(attention)) / np.arange(1, len(attention) + 1)[:, None]


def always(**wrong):
    """Informations of chains of another order, or of other tables."""

    def break_it(patch):
        right = _information._informations
        names = ("positions", "order", "alpha", "nodes")
        patch.setattr(
            _information,
            "_informations",
            lambda *given: right(**dict(zip(names, given, strict=True)) | wrong),
        )

    return break_it


def few_nodes(patch):
    """Informations that depend on the number of nodes more than on anything else."""
    right = _information._mean_information
    patch.setattr(
        _information,
        "_mean_information",
        lambda size, order, alpha, nodes: right(size, order, alpha, nodes) * (1 if nodes > 6 else 3),
    )


CASES = {
    "nichani2024/two-parents-information": Case(
        {"positions": 6, "nodes": 8, "fewer": 6},
        always(alpha=1.0),
        (always(alpha=0.1), always(order=2), few_nodes),
        traced=False,
    ),
    "nichani2024/construction": Case({"graphs": [[6, 3, 0]]}, weaker_first, traced=False),
    "nichani2024/construction-counted": Case({"graphs": [[6, 3, 0]]}, sharper(1 + 1e-9), traced=False),
    "nichani2024/several-parents": Case(
        {"chains": [[2, 8, 3]]}, other_chains(first=0.4), (other_chains(second=1 + 1e-9),), traced=False
    ),
    "nichani2024/first-gradient": Case(
        {"positions": 12, "seeds": 1, "sequences": 4000},
        drawn_from_another_graph,
        traced=False,
    ),
    "nichani2024/adjacency": Case(SMALL, looks_elsewhere, traced=False),
    "nichani2024/induction-head": Case(
        {"positions": 12, "states": 6, "steps": 150, "seeds": 3, "sequences": 1000},
        looks_elsewhere,
        traced=False,
    ),
    "nichani2024/full-model": Case(
        FULL_MODEL,
        attends_otherwise(_full_model, one_edge_turned),
        (attends_otherwise(_full_model, spread),),
        stuck=grid_that_ends_early,
        traced=False,
    ),
    "nichani2024/with-mlp": Case(
        {"positions": 6, "steps": 800, "rate": 0.02, "seed": 100, "seeds": 3, "sequences": 2000},
        attends_otherwise(_with_mlp, one_edge_turned),
        (trained_on_unrelated_symbols,),
        traced=False,
    ),
    "nichani2024/full-model-loss": Case(FULL_MODEL, half_read_out, stuck=grid_that_ends_early, traced=False),
    "nichani2024/trained-loss": Case(
        {**JUDGED, "positions": 16}, blunter, stuck=first_of_the_grid, traced=False
    ),
    "nichani2024/trained-approaches-bayes": Case(
        {**JUDGED, "lengths": [12, 24]}, untrained_where_long, stuck=grid_that_ends_early, traced=False
    ),
    "nichani2024/construction-approaches-bayes": Case(
        COUNTED, blurred, stuck=first_of_the_grid, traced=False
    ),
}
