"""Small settings and wrong worlds for the claims of fu2024."""

import numpy as np

from mesascope.learners import Newton, predictions, prompt_examples
from mesascope.papers.fu2024 import _depth, _named, _newton, _transformer
from mesascope.probes import StepFamily
from mesascope.probes._step_family import family_answers

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

    def networks(settings):
        of_zeros = [_depth._model(settings["dim"], np.zeros((k + 1, 2))) for k in range(settings["layers"])]
        return [of_zeros] * settings["seeds"]

    patch.setattr(_depth, "trained", networks)
    patch.setattr(
        _depth._Prompts, "of_model", lambda prompts, model: prompts.newton[3 * len(model.network.layers)]
    )


def _layers_read_as_iterations(patch):
    """Behind every layer three more of Newton's iterations can be read."""

    def read(model, probed, judged):
        counts = 3 * np.arange(len(model.network.layers) // 2 + 1)
        learners = tuple(Newton(1.0, int(count)) for count in counts)
        return family_answers(StepFamily("newton", counts, learners), judged)

    patch.setattr(_transformer, "_read", read)


def _networks_that_are_iterations(patch):
    """Five of Newton's iterations in the place of every network."""

    def iterated(x, y):
        return np.asarray(predictions(Newton(1.0, 5), *prompt_examples(x, y)))[:, -1, 0]

    patch.setattr(_named, "trained", lambda settings: [[iterated] * settings["layers"]] * settings["seeds"])


DEPTH = {"dim": 4, "examples": 8, "training_prompts": 200}

CASES = {
    "fu2024/newton-layers": Case(
        {"cases": [[3, 6, 2]]}, scaled(_newton.theory, "newton_error", 1 + 1e-9), traced=False
    ),
    "fu2024/gradient-steps": Case({"prompts": 30}, _powers_that_grow_linearly, traced=False),
    "fu2024/printed-steps": Case(
        {"step_sizes": [0.02], "batches": 3, "prompts": 30}, _two_iterations_at_once, traced=False
    ),
    "fu2024/depth": Case(
        {**DEPTH, "prompts": 200},
        _layers_that_are_three_iterations,
        verdict="refuted",
        turned="verified",
        traced=False,
    ),
    "fu2024/layers-named": Case(
        {**DEPTH, "tasks": 120},
        _networks_that_are_iterations,
        verdict="refuted",
        turned="verified",
        traced=False,
    ),
    "fu2024/transformer": Case(
        {"layers": 3, "width": 16, "steps": 200, "batch": 32, "tasks": 200, "most_iterations": 16},
        _layers_read_as_iterations,
        verdict="inconclusive",
        turned="verified",
        traced=False,
    ),
}
