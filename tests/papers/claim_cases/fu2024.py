"""Small settings and wrong worlds for the claims of fu2024."""

import equinox as eqx

from mesascope.models import Stack
from mesascope.papers.fu2024 import _depth, _newton, _transformer

from ._case import Case, scaled


def _powers_that_grow_linearly(patch):
    """An iteration that multiplies the error once more by the same factor, where Newton's squares it."""
    patch.setattr(_newton, "_newton", lambda count: _newton.GradientDescent(0.03, 9 + 30 * count))


def _layers_that_do_not_move_inputs(patch):
    """Plain gradient descent, whose layers add to each other and do not multiply."""
    patch.setattr(_depth, "_PLUS", ((1, 0),))


def _layers_in_reverse_order(patch):
    right = _transformer._trained

    def reversed_models(*args):
        return [
            eqx.tree_at(lambda m: m.network, model, Stack(model.network.layers[::-1]))
            for model in right(*args)
        ]

    patch.setattr(_transformer, "_trained", reversed_models)


CASES = {
    "fu2024/newton-layers": Case({"cases": [[3, 6, 2]]}, scaled(_newton.theory, "newton_error", 1 + 1e-9)),
    "fu2024/gradient-steps": Case(
        {
            "dim": 10,
            "examples": 20,
            "step_size": 0.06,
            "most_steps": 600,
            "batches": 3,
            "similarity": 0.95,
            "tolerance": 0.1,
        },
        _powers_that_grow_linearly,
    ),
    "fu2024/depth": Case(
        {"dim": 4, "examples": 8, "layers": 2, "training_prompts": 500, "prompts": 200},
        _layers_that_do_not_move_inputs,
    ),
    "fu2024/transformer": Case(
        {
            "layers": 2,
            "width": 16,
            "steps": 400,
            "batch": 128,
            "seeds": 4,
            "tasks": 200,
            "first": 1,
            "most_iterations": 4,
            "most_steps": 32,
            "factor": 1.5,
            "similarity": 0.75,
        },
        _layers_in_reverse_order,
    ),
}
