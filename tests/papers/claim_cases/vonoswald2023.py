"""How the claims of vonoswald2023 are tested."""

import equinox as eqx
import numpy as np

from mesascope.papers._prompts import construction_model
from mesascope.papers.vonoswald2023 import (
    _constructions,
    _interleaved,
    _layers,
    _looped,
    _named,
    _one_layer,
)
from mesascope.theory import Construction
from mesascope.theory import vonoswald2023 as theory

from . import Case, at_rest, scaled

SMALL = {"cases": [[2, 4, 2]], "prompts": 4}
TRAINED = {"dim": 3, "examples": 5, "recorded": [200, 400], "batch": 256, "prompts": 10_000, "tasks": 400}
ASKED = {**TRAINED, "asked": 1, "tasks": 200}
LOOPED = {
    "dim": 5,
    "examples": 5,
    "rate": 0.02,
    "batch": 256,
    "recorded": [600, 1200],
    "prompts": 5000,
    "tasks": 300,
}
INTERLEAVED = {"dim": 1, "width": 16, "steps": 700, "rate": 0.006, "seeds": 4, "tasks": 1000}


def curved(factor):
    """A world in which GD++ corrects the curvature of inputs by another factor."""

    def break_it(patch):
        right = _constructions.GradientDescentPlusPlus
        patch.setattr(
            _constructions, "GradientDescentPlusPlus", lambda s, c, steps: right(s, c * factor, steps)
        )

    return break_it


def without_one_scale(patch):
    """Weights are averaged as they come out of training, whatever factor W^KQ and W^PV have exchanged."""
    patch.setattr(
        _one_layer, "_half_way", lambda a, b: Construction((a.w_kq + b.w_kq) / 2, (a.w_pv + b.w_pv) / 2)
    )


def preconditioned(patch):
    """The trained layers attend to one coordinate of the query a twentieth more."""
    right = _layers.at_the_end

    def changed(settings):
        stretch = np.ones(settings["dim"] + 1)
        stretch[0] = 1.05
        return [
            eqx.tree_at(lambda m: m.network.layers[0].w_kq, model, replace_fn=lambda w: w * stretch)
            for model in right(settings)
        ]

    patch.setattr(_named, "at_the_end", changed)


def less_curved(patch):
    """The GD++ that loops are held against corrects four fifths of the curvature that is best."""
    right = theory.gradient_descent_plus_plus
    patch.setattr(
        theory, "gradient_descent_plus_plus", lambda d, s, c: right(d, s, [0.8 * value for value in c])
    )


def exchanged_positions(patch):
    """The trained networks are asked with the positions of every input and its label exchanged."""
    right = _interleaved.trained

    def exchanged(settings):
        order = np.minimum(np.arange(2 * settings["examples"] + 1) ^ 1, 2 * settings["examples"])
        return {
            steps: [
                eqx.tree_at(lambda m: m.embedding.positions.table, model, replace_fn=lambda t: t[order])
                for model in models
            ]
            for steps, models in right(settings).items()
        }

    patch.setattr(_interleaved, "trained", exchanged)


def one_step(patch):
    """In the place of the trained networks stand layers that are one step, of nearly the best size."""

    def constructed(settings):
        best = float(theory.best_step_size(settings["dim"], settings["examples"]))
        models = [
            construction_model(theory.gradient_descent(settings["dim"], [part * best]))
            for part in (0.98, 0.99, 1.01, 1.02)
        ]
        return {settings["steps"] // 2: models, settings["steps"]: models}

    patch.setattr(_interleaved, "trained", constructed)


def nearly_corrected(patch):
    """What stands for gradient descent corrects 95 % of the curvature."""
    right = _looped._best

    def changed(eigenvalues, loops):
        best = right(eigenvalues, loops)
        plus = best["GD++"]
        size, curvature = plus.step_size, 0.95 * plus.curvature
        return {"GD": plus._replace(step_size=size, curvature=curvature), "GD++": plus}

    patch.setattr(_looped, "_best", changed)


CASES = {
    "vonoswald2023/proposition-1": Case(
        SMALL, scaled(_constructions, "predictions", 1 + 1e-10), traced=False
    ),
    "vonoswald2023/gd-plus-plus": Case(SMALL, curved(1 + 1e-9), traced=False),
    "vonoswald2023/trained-loss": Case(
        TRAINED,
        scaled(_layers, "best_step_size", 1.15),
        (scaled(_layers, "best_loss", 1.1),),
        traced=False,
    ),
    "vonoswald2023/printed-loss": Case({"samples": 10}, scaled(_one_layer, "best_loss", 1.1), traced=False),
    "vonoswald2023/sensitivities": Case(TRAINED, scaled(_layers, "best_step_size", 1.2), traced=False),
    "vonoswald2023/interpolated-weights": Case(TRAINED, without_one_scale, traced=False),
    "vonoswald2023/named": Case(
        {**ASKED, "learners": ["zero", "gradient-descent", "least-squares"]},
        scaled(_named, "best_step_size", 1.05),
        traced=False,
    ),
    "vonoswald2023/named-beside-preconditioners": Case(
        {
            **ASKED,  # the training of the others
            "rate": 0.03,
            "seeds": 3,
            "learners": ["zero", "gradient-descent", "preconditioned-gradient-descent"],
        },
        at_rest(_named, "fall", preconditioned),
        traced=False,
    ),
    "vonoswald2023/looped-gd-plus-plus": Case(
        LOOPED, less_curved, (at_rest(_looped, "fall", nearly_corrected),), traced=False
    ),
    "vonoswald2023/interleaved-copying": Case(INTERLEAVED, exchanged_positions, traced=False),
    "vonoswald2023/interleaved-one-step": Case(
        INTERLEAVED, one_step, verdict="refuted", turned="verified", traced=False
    ),
    "vonoswald2023/interleaved-better": Case(INTERLEAVED, exchanged_positions, traced=False),
}
