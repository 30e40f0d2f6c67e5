"""How the claims of vonoswald2023 are tested."""

import itertools

import equinox as eqx
import numpy as np

from mesascope.papers._prompts import construction_model
from mesascope.papers._spectral_steps import best_polynomial, spectra
from mesascope.papers.vonoswald2023 import (
    _common,
    _constructions,
    _curved,
    _five_layers,
    _interleaved,
    _layers,
    _looped,
    _named,
    _one_layer,
)
from mesascope.theory import Construction
from mesascope.theory import vonoswald2023 as theory

from . import Case, at_rest, scaled, with_models

SMALL = {"cases": [[2, 4, 2]], "prompts": 4}
TRAINED = {"dim": 3, "examples": 5, "recorded": [200, 400], "batch": 256, "prompts": 10_000}
ASKED = {**TRAINED, "asked": 1, "tasks": 200}
LOOPED = {
    "dim": 5,
    "examples": 5,
    "rate": 0.02,
    "batch": 256,
    "recorded": [600, 1200],
    "prompts": 5000,
    "chosen_on": 2000,
    "tasks": 300,
}
INTERLEAVED = {"batch": 64, "recorded": [150, 300], "seeds": 2, "tasks": 2000}
CURVED = {"recorded": [1000, 2000], "prompts": 5000}
COPYING = {"recorded": [900, 1800], "seeds": 2, "tasks": 1000}


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
        stretch = np.ones(settings.dim + 1)
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


def one_step(patch):
    """In the place of the trained networks stand layers that are one step, of nearly the best size."""

    def constructed(settings):
        models = [_layers_of_one_step(settings, 0.99), _layers_of_one_step(settings, 1.01)]
        return dict.fromkeys(settings.recorded, models)

    patch.setattr(_interleaved, "trained", constructed)


def _layers_of_one_step(settings, part):
    """The construction, with this part of the best step."""
    step = part * _common.best_step_size(settings)
    return construction_model(theory.gradient_descent(settings.dim, [step]))


def keys_for_queries(patch):
    """Keys and queries of the first layers of the trained networks are exchanged."""

    def exchanged(model, settings):
        first = model.network.layers[0].layer
        return eqx.tree_at(
            lambda m: (m.network.layers[0].layer.w_k, m.network.layers[0].layer.w_q),
            model,
            (first.w_q, first.w_k),
        )

    patch.setattr(_interleaved, "trained", with_models(_interleaved.trained, exchanged))


def scaled_curvature(factor):
    """A world in which the best curvature is so many times what it is."""

    def break_it(patch):
        right = _looped._searched

        def changed(*args):
            best = right(*args)
            return best._replace(curvature=factor * best.curvature)

        patch.setattr(_looped, "_searched", changed)

    return break_it


def one_start_in_three(patch):
    """Of the searches for the best steps two in three stop a twentieth above the best, each elsewhere."""
    right, count = _looped.minimized_by_values, itertools.count()

    def stuck(function, start, **options):
        found, number = right(function, start, **options), next(count)
        return found if number % 3 == 0 else found._replace(value=found.value * (1.05 + 0.002 * number))

    patch.setattr(_looped, "minimized_by_values", stuck)


def nearly_the_best_steps(patch):
    """Trained layers take the best steps of gradient descent, but for the largest, which is two fifths too short."""

    def wrong(make, process, task, recorded, settings, **more):
        best = best_polynomial(spectra(process, task.examples, 4000, 0), settings.layers)
        sizes = np.sort(1 / np.polynomial.polynomial.polyroots(best).real)
        model = construction_model(theory.gradient_descent(settings.dim, sizes * [1, 1, 1, 1, 0.6]))
        return {step: [model] * settings.seeds for step in recorded}

    patch.setattr(_five_layers, "recorded_trainings", wrong)


def nearly_corrected(patch):
    """What stands for gradient descent corrects 95 % of the curvature."""
    right = _looped._best

    def changed(eigenvalues, settings):
        best = right(eigenvalues, settings)
        plus = best["GD++"]
        size, curvature = plus.step_size, 0.95 * plus.curvature
        return {"GD": plus._replace(step_size=size, curvature=curvature), "GD++": plus}

    patch.setattr(_looped, "_best", changed)


def bent(patch):
    """The networks see every label bent: y + 10y²."""
    right = _curved._asked
    patch.setattr(_curved, "_asked", lambda model, x, y: right(model, x, y + 10 * y**2))


def better_step(patch):
    """The formula for the best step says a quarter of its loss."""
    right = theory.best_sine_step_loss
    patch.setattr(theory, "best_sine_step_loss", lambda *args, **law: right(*args, **law) / 4)


CASES = {
    "vonoswald2023/proposition-1": Case(
        SMALL, scaled(_constructions, "predictions", 1 + 1e-10), traced=False
    ),
    "vonoswald2023/gd-plus-plus": Case(SMALL, curved(1 + 1e-9), traced=False),
    "vonoswald2023/trained-loss": Case(TRAINED, scaled(_common, "best_step_size", 1.15), traced=False),
    "vonoswald2023/printed-loss": Case(
        {"samples": 40},
        scaled(_one_layer, "best_loss", 1.1),
        (scaled(_one_layer, "best_loss", 1.015),),  # within what one sample may be off, but not their mean
        traced=False,
    ),
    "vonoswald2023/sensitivities": Case(
        {**TRAINED, "tasks": 400}, scaled(_common, "best_step_size", 1.2), traced=False
    ),
    "vonoswald2023/interpolated-weights": Case(TRAINED, without_one_scale, traced=False),
    "vonoswald2023/larger-inputs": Case(
        {**TRAINED, "scales": [0.75, 1.0], "lengths": [1.0, 2.0]},
        scaled(_common, "best_step_size", 1.15),
        (without_one_scale,),
        traced=False,
    ),
    "vonoswald2023/named": Case(
        {
            **ASKED,
            "rate": 0.03,
            "seeds": 2,
            "learners": ["zero", "gradient-descent", "preconditioned-gradient-descent"],
        },
        scaled(_named, "best_step_size", 1.05),
        (at_rest(_named, "fall", preconditioned),),
        traced=False,
    ),
    "vonoswald2023/looped-gd-plus-plus": Case(
        LOOPED,
        less_curved,
        (at_rest(_looped, "fall", nearly_corrected),),
        stuck=one_start_in_three,
        traced=False,
    ),
    "vonoswald2023/five-layers": Case(
        {
            "dim": 3,
            "examples": 6,
            "steps": 2000,
            "batch": 256,
            "seed": 50,
            "chosen_on": 4000,
            "prompts": 30_000,
        },
        nearly_the_best_steps,
        traced=False,
    ),
    "vonoswald2023/printed-curvatures": Case(
        {"chosen_on": 2000}, scaled_curvature(1.06), stuck=one_start_in_three, traced=False
    ),
    "vonoswald2023/interleaved-one-step": Case(
        INTERLEAVED, one_step, decision="not met", turned="met", traced=False
    ),
    "vonoswald2023/interleaved-copying": Case(
        COPYING, at_rest(_interleaved, "fall", keys_for_queries), traced=False
    ),
    "vonoswald2023/curved-functions": Case(
        CURVED,
        at_rest(_curved, "fall", better_step),
        (at_rest(_curved, "fall", bent),),
        traced=False,
    ),
}
