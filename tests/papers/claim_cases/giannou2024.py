"""How the claims of giannou2024 are tested."""

from mesascope.papers.giannou2024 import _linear as paper
from mesascope.papers.giannou2024 import _logistic, _logistic_layers
from mesascope.theory import giannou2024 as theory

from . import Case, scaled, writes_more


def _one_layer_too_many(patch):
    """The closed form for the number of layers says one too many."""
    right = theory.newton_steps_needed
    patch.setattr(theory, "newton_steps_needed", lambda condition, error: right(condition, error) + 1)


def _two_layers_more(patch):
    """The error is small two layers later."""
    right = paper._needed
    patch.setattr(paper, "_needed", lambda left, goal: right(left, goal) + 2)


def _regularized_more(patch):
    """The layers regularize by a billionth more."""
    right = _logistic_layers.newton_step
    patch.setattr(
        _logistic_layers,
        "newton_step",
        lambda dim, examples, regularization, *rest: right(dim, examples, regularization * (1 + 1e-9), *rest),
    )


CASES = {
    "giannou2024/newton-step": Case(
        {"cases": [[2, 3]], "matrices": 3},
        writes_more(theory, "newton_step_in_two_layers"),
        traced=False,
    ),
    "giannou2024/newton-step-in-one-layer": Case(
        {"cases": [[2, 3]], "matrices": 3},
        writes_more(theory, "newton_step"),
        traced=False,
    ),
    "giannou2024/least-squares": Case(
        {"cases": [[2, 5]], "steps": [0, 20], "prompts": 3},
        writes_more(theory, "least_squares_by_newton"),
        traced=False,
    ),
    # a count of steps of descent a twentieth off
    "giannou2024/quadratic-convergence": Case(
        {"dim": 3, "layers": 12, "conditions": [2, 32]},
        scaled(paper, "_descended", 0.95),
        (_two_layers_more,),
        traced=False,
    ),
    # matrices a thousandth smaller than the law says
    "giannou2024/exact-law": Case(
        {"dim": 3, "layers": 12, "conditions": [2, 32]},
        scaled(paper, "_with_condition", 0.999),
        (_one_layer_too_many,),
        traced=False,
    ),
    "giannou2024/logistic-newton": Case(
        {"cases": [[2, 10]], "prompts": 3},
        _regularized_more,
        (scaled(_logistic, "_newton", 1 + 1e-10), scaled(_logistic, "_minimizer", 1 + 1e-10)),
        traced=False,
    ),
}
