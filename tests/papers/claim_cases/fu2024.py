"""Small settings and wrong worlds for the claims of fu2024."""

import numpy as np

from mesascope.learners import GradientDescent
from mesascope.papers.fu2024 import _depth, _newton, _transformer
from mesascope.probes import StepFamily

from ._case import Case, scaled


def _powers_that_grow_linearly(patch):
    """An iteration that multiplies the error once more by the same factor, where Newton's squares it."""
    patch.setattr(_newton, "_newton", lambda count: _newton.GradientDescent(0.03, 9 + 30 * count))


def _two_iterations_at_once(patch):
    """An iteration that is worth two."""
    right = _newton._newton
    patch.setattr(_newton, "_newton", lambda count: right(2 * count))


def _layers_that_are_three_iterations(patch):
    """Layers that do advance evenly."""
    patch.setattr(
        _depth, "_trained", lambda settings, _: [np.zeros((k + 1, 2)) for k in range(settings["layers"])]
    )
    patch.setattr(
        _depth._Prompts, "of_model", lambda prompts, model: prompts.newton[3 * len(model.network.layers)]
    )


def _descent_for_newton(patch):
    """What is called Newton's method takes gradient steps, as many as are most like its iterations."""

    def iterations(settings):
        counts = np.arange(settings["most_iterations"] + 1)
        steps = np.round(8 * 2 ** (counts / 2)).astype(int)
        learners = tuple(GradientDescent(settings["step_size"], int(count)) for count in steps)
        return StepFamily("newton", counts, learners)

    patch.setattr(_transformer, "_iterations", iterations)


CASES = {
    "fu2024/newton-layers": Case({"cases": [[3, 6, 2]]}, scaled(_newton.theory, "newton_error", 1 + 1e-9)),
    "fu2024/gradient-steps": Case({"prompts": 30}, _powers_that_grow_linearly),
    "fu2024/printed-steps": Case(
        {"step_sizes": [0.02], "batches": 3, "prompts": 30}, _two_iterations_at_once
    ),
    "fu2024/depth": Case(
        {"dim": 4, "examples": 8, "training_prompts": 200, "prompts": 200},
        _layers_that_are_three_iterations,
        verdict="refuted",
        turned="verified",
    ),
    "fu2024/transformer": Case(
        {"layers": 3, "width": 16, "steps": 200, "batch": 32, "tasks": 200, "most_iterations": 16},
        _descent_for_newton,
        verdict="refuted",
        turned="inconclusive",
    ),
}
