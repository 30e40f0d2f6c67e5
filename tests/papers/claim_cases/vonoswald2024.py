"""How the claims of vonoswald2024 are tested."""

from dataclasses import replace
from fractions import Fraction

import equinox as eqx
import numpy as np

from mesascope.papers.vonoswald2024 import (
    _blocks,
    _compressed,
    _copying,
    _depth,
    _few_shot,
    _identities,
    _layer,
    _one_layer,
    _preconditioned,
)
from mesascope.theory import vonoswald2024 as theory

from . import Case, at_rest, scaled, with_models, writes_more

SMALL = {"cases": [[2, 6]], "sequences": 2}
TRAINED = {
    "steps": 400,
    "sequences": 500,
    "horizon": 14,
    "seeds": 3,
}  # one training of mesa layers for two claims
SOFTMAX = {"horizon": 14, "steps": 450, "rate": 0.01, "seed": 0, "seeds": 3}  # one training for two claims
LAYER = {"heads": 1, "steps": 500, "seeds": 4, "sequences": 1000, "samples": 10}


def other_ridge(factor):
    """Mesa layers have another λ than is said."""

    def break_it(patch):
        right = _identities._mesa
        patch.setattr(_identities, "_mesa", lambda dim, ridge: right(dim, ridge * factor))

    return break_it


def other_ridge_tokens(patch):
    """The tokens that stand for the ridge are those of a λ that is a millionth larger."""
    right = theory.ridge_tokens
    patch.setattr(theory, "ridge_tokens", lambda sequence, ridge: right(sequence, ridge * (1 + 1e-6)))


def _in_every_module(patch, name, value):
    """Replace a function of the trained layer wherever it is imported."""
    for module in (_blocks, _layer, _one_layer):
        if hasattr(module, name):
            patch.setattr(module, name, value)


def other_steps(factor):
    """The best numbers are taken to be so many times what they are."""

    def break_it(patch):
        right = _blocks.fits

        def changed(settings):
            found = right(settings)
            return {**found, **{name: found[name] * [factor, factor, 1, 1, 1] for name in ("step", "pair")}}

        _in_every_module(patch, "fits", changed)

    return break_it


def other_sign(patch):
    """The second number is taken to be positive."""
    right = _blocks.fits

    def changed(settings):
        found = right(settings)
        return {
            **found,
            "pair": found["pair"] * [1, -1, 1, 1, 1],
            "others": [-one for one in found["others"]],
        }

    _in_every_module(patch, "fits", changed)


def without_the_block(patch):
    """The trained layers do not weigh s_i·s_{t−1}."""

    def without(model, settings):
        keep = slice(2 * settings.dim, None)
        return eqx.tree_at(
            lambda m: m.network.layers[0].w_q, model, replace_fn=lambda w: w.at[:, :, keep].set(0.0)
        )

    _in_every_module(patch, "trained_layers", with_models(_layer.trained_layers, without))


def less_ridge(patch):
    """Trained mesa layers are asked with 3 % of the λ that they were trained with."""
    _changed(patch, lambda layer: layer.log_regularization, lambda log: log + np.log(0.03))


def distorted_queries(patch):
    """Trained mesa layers attend to one coordinate of the query 30 % more."""
    _changed(patch, lambda layer: layer.w_q, lambda w: w.at[:, 0].multiply(1.3))


def _changed(patch, where, change):
    """Mesa layers with other weights."""

    def changed(model, settings):
        return eqx.tree_at(lambda m: where(m.network.layers[0]), model, replace_fn=change)

    patch.setattr(_depth, "mesa_layers", with_models(_depth.mesa_layers, changed))


def without_a_block(patch):
    """The compressed networks have no value of the previous token for the prediction."""
    right = _compressed.blocks_of

    def without(weights, dim):
        return right(weights, dim) * np.where(np.arange(9).reshape(3, 3) == 1, 0.0, 1.0)

    patch.setattr(_compressed, "blocks_of", without)


def other_contexts(patch):
    """Inputs are preconditioned by the contexts of other sequences."""
    right = _preconditioned._preconditioned

    def exchanged(problems, regularization):
        return right(replace(problems, x=problems.x[::-1]), regularization)

    patch.setattr(_preconditioned, "_preconditioned", exchanged)


def exchanged_positions(module):
    """The trained networks are asked with the positions of every two neighbours exchanged."""

    def exchanged(model, settings):
        order = np.arange(settings.horizon) ^ 1
        return eqx.tree_at(lambda m: m.embedding.positions.table, model, replace_fn=lambda t: t[order])

    return lambda patch: patch.setattr(
        module, "softmax_networks", with_models(_copying.softmax_networks, exchanged)
    )


def labels_of_others(variant):
    """In sequences of this variant the labels are those of other tasks."""

    def break_it(patch):
        right = _few_shot._tasks

        def exchanged(settings, key, tasks, examples):
            x, y = right(settings, key, tasks, examples)
            return x, np.roll(y, 1, 0) if examples == _few_shot._examples(settings, variant) else y

        patch.setattr(_few_shot, "_tasks", exchanged)

    return break_it


def end_tokens_add_nothing(patch):
    """By the formula no end token adds anything."""
    right = theory.few_shot_error

    def wrong(*args, **settings):
        found = right(*args, **settings)
        return found if settings["end_token_square"] is None else found._replace(other_pairs=Fraction(0))

    patch.setattr(theory, "few_shot_error", wrong)


CASES = {
    "vonoswald2024/proposition-1": Case(SMALL, writes_more(theory, "gradient_step"), traced=False),
    "vonoswald2024/mesa-layer-is-ridge": Case(
        {**SMALL, "regularizations": [1.0]}, other_ridge(1 + 1e-9), traced=False
    ),
    "vonoswald2024/linear-attention-limit": Case({"dim": 2, "horizon": 6}, other_ridge(1.001), traced=False),
    "vonoswald2024/proposition-2": Case(
        {"dim": 2, "horizon": 6, "sequences": 2, "layers": [1, 3, 4000]}, other_ridge_tokens, traced=False
    ),
    "vonoswald2024/one-layer": Case(
        {**LAYER, "dim": 8, "horizon": 24}, other_steps(1.3), (other_steps(0.7),), traced=False
    ),
    "vonoswald2024/second-block": Case(
        {
            **LAYER,
            "dim": 4,
            "horizon": 12,
            "cases": [["uniform", 4, 12]],
            "learners": ["gradient-descent", "least-squares"],
            "asked": 1,
            "tasks": 80,
        },
        without_the_block,
        (other_sign, other_steps(1.25)),
        traced=False,
    ),
    "vonoswald2024/depth-and-mesa-layer": Case(
        {**TRAINED, "layers": [1, 2]},
        at_rest(_depth, "fall_of_errors", less_ridge),
        traced=False,
    ),
    "vonoswald2024/mesa-layer-named": Case(
        {**TRAINED, "tasks": 100, "learners": ["least-squares", "ridge"]},
        at_rest(_depth, "fall_of_errors", distorted_queries),
        traced=False,
    ),
    "vonoswald2024/compressed-depth": Case(
        {**TRAINED, "layers": 2},
        at_rest(_compressed, "fall_of_errors", without_a_block),
        (scaled(_compressed, "_share", 0.8),),
        traced=False,
    ),
    "vonoswald2024/preconditioned-inputs": Case(
        {**TRAINED, "layers": 2, "tasks": 1000},
        at_rest(_preconditioned, "fall_of_errors", other_contexts),
        traced=False,
    ),
    "vonoswald2024/copying": Case(
        {**SOFTMAX, "tasks": 100, "sequences": 200},
        exchanged_positions(_copying),
        traced=False,
    ),
    "vonoswald2024/few-shot-exact": Case(
        {"cases": [["rademacher", 2, 1, 0.3]]},
        writes_more(theory, "gradient_step"),
        (end_tokens_add_nothing,),
        traced=False,
    ),
    "vonoswald2024/few-shot": Case(
        {**SOFTMAX, "tasks": 1000, "sequences": 200, "compared": 3, "tuning_steps": 30},
        at_rest(_few_shot, "fall_of_errors", labels_of_others("no end tokens")),
        (
            scaled(_few_shot, "_errors", 0.8),
            at_rest(_few_shot, "fall_of_errors", labels_of_others("end tokens")),
        ),
        decision="undecided",
        traced=False,
    ),
}
