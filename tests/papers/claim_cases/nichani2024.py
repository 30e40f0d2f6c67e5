"""How the claims of nichani2024 are tested."""

from mesascope.papers.nichani2024 import _graph, _induction, _loss
from mesascope.processes import MarkovTree
from mesascope.theory import nichani2024 as theory

from . import Case

SMALL = {"positions": 8, "states": 5, "sequences": 4000}
TRAINED = {**SMALL, "steps": 150}


def rewired(process):
    """The same graph but for the last parent, which is another position."""
    parents = list(process.parents)
    child = max(i for i, parent in enumerate(parents) if parent is not None)
    parents[child] = parents[child] - 1 if parents[child] else 1
    return MarkovTree(parents, process.states, process.alpha)


def drawn_from_another_graph(patch):
    right = _graph.drawn
    patch.setattr(_graph, "drawn", lambda process, *args, **more: right(rewired(process), *args, **more))


def trained_on_another_graph(module):
    def break_it(patch):
        right = module.trained
        patch.setattr(module, "trained", lambda process, settings: right(rewired(process), settings))

    return break_it


def sharper(factor):
    """A construction whose second layer has other scores."""

    def break_it(patch):
        right = theory.attention_scores
        patch.setattr(
            theory, "attention_scores", lambda parents, s, one, two: right(parents, s, one, two * factor)
        )

    return break_it


def blurred(patch):
    """Attention whose second layer cannot be sharp: β at most 4."""
    right = theory.matched_frequencies
    patch.setattr(
        theory, "matched_frequencies", lambda parents, s, m, beta: right(parents, s, m, min(beta, 4.0))
    )


CASES = {
    "nichani2024/construction": Case({"graphs": [[6, 3, 0]]}, sharper(1 + 1e-9)),
    "nichani2024/first-gradient": Case(SMALL, drawn_from_another_graph),
    "nichani2024/adjacency": Case(TRAINED, trained_on_another_graph(_graph)),
    "nichani2024/trained-loss": Case(
        {**TRAINED, "sequences": 20_000, "tolerance": 0.03}, trained_on_another_graph(_loss)
    ),
    "nichani2024/bayes-loss": Case({"lengths": [10, 320], "sequences": 2000}, blurred),
    "nichani2024/induction-head": Case({**TRAINED, "matched": 0.8}, trained_on_another_graph(_induction)),
}
