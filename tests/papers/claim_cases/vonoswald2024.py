"""How the claims of vonoswald2024 are tested."""

import equinox as eqx
import numpy as np

from mesascope.papers.vonoswald2024 import _copying, _depth, _identities, _models, _named, _one_layer
from mesascope.theory import vonoswald2024 as theory

from . import Case, at_rest, writes_more

SMALL = {"cases": [[2, 6]], "sequences": 2}
TRAINED = {"steps": 400, "sequences": 1000}
ASKED = {**TRAINED, "asked": 1, "tasks": 160}


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


def longer_steps(patch):
    """The best numbers are taken to be 15 % larger than they are."""
    right = _one_layer.best_numbers
    patch.setattr(
        _one_layer,
        "best_numbers",
        lambda settings: {name: (1.15 * a, 1.15 * b) for name, (a, b) in right(settings).items()},
    )


def trained_to_the_construction(patch):
    """Training ends at the construction itself."""
    _constructed(patch, _one_layer, "seeds")


def sequences_of_one_size(patch):
    """Training and judgement see sequences of one size, those of the claim beside it."""
    right = _one_layer._above
    patch.setattr(_one_layer, "_above", lambda settings: right({**settings, **TRAINED, "law": "rademacher"}))


def second_block_in_the_construction(patch):
    """The construction, too, weighs token i by s_i·s_{t−1}."""
    right = _one_layer.best_numbers
    patch.setattr(
        _one_layer,
        "best_numbers",
        lambda settings: dict.fromkeys(right(settings), right(settings)["two blocks"]),
    )


def less_ridge(patch):
    """Trained mesa layers are asked with 3 % of the λ that they were trained with."""
    _changed(patch, _depth, lambda layer: layer.log_regularization, lambda log: log + np.log(0.03))


def distorted_queries(patch):
    """Trained mesa layers attend to one coordinate of the query 30 % more."""
    _changed(patch, _named, lambda layer: layer.w_q, lambda w: w.at[:, 0].multiply(1.3))


def _changed(patch, module, where, change):
    """Mesa layers with other weights, as this module sees them."""

    def changed(settings):
        return [
            eqx.tree_at(lambda m: where(m.network.layers[0]), model, replace_fn=change)
            for model in _models.mesa_layers(settings)
        ]

    patch.setattr(module, "mesa_layers", changed)


def the_construction(patch):
    """What is asked is the construction itself."""
    _constructed(patch, _named, "asked")


def _constructed(patch, module, count):
    """The layers of this module are the construction, as many as a setting says."""

    def layers_of(settings, layers):
        numbers = _one_layer.best_numbers(settings)["construction"]
        return [_one_layer._layer(settings["dim"], *numbers)] * settings[count]

    patch.setattr(module, "linear_layers", layers_of)


def exchanged_positions(patch):
    """The trained networks are asked with the positions of every two neighbours exchanged."""
    right = _copying._trained

    def exchanged(settings):
        order = np.arange(settings["horizon"]) ^ 1
        return {
            steps: [
                eqx.tree_at(lambda m: m.embedding.positions.table, model, replace_fn=lambda t: t[order])
                for model in models
            ]
            for steps, models in right(settings).items()
        }

    patch.setattr(_copying, "_trained", exchanged)


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
        {}, trained_to_the_construction, verdict="refuted", turned="verified", traced=False
    ),
    "vonoswald2024/one-layer-two-blocks": Case(
        {}, sequences_of_one_size, verdict="refuted", turned="verified", traced=False
    ),
    "vonoswald2024/one-layer-two-blocks-equal-sizes": Case(
        TRAINED, longer_steps, (second_block_in_the_construction,), traced=False
    ),
    "vonoswald2024/depth-and-mesa-layer": Case(
        {**TRAINED, "layers": [1, 2]}, at_rest(_depth, "fall_of_mesa_layers", less_ridge), traced=False
    ),
    "vonoswald2024/mesa-layer-named": Case(
        {**ASKED, "learners": ["least-squares", "ridge"]},
        at_rest(_named, "fall_of_mesa_layers", distorted_queries),
        traced=False,
    ),
    "vonoswald2024/one-layer-named": Case(
        {**ASKED, "learners": ["gradient-descent", "least-squares"]},
        the_construction,
        verdict="refuted",
        turned="verified",
        traced=False,
    ),
    "vonoswald2024/copying": Case(
        {"horizon": 14, "steps": 450, "seeds": 1, "tasks": 100, "sequences": 200},
        exchanged_positions,
        traced=False,
    ),
}
