"""How the claims of mahankali2024 are tested."""

import equinox as eqx

from mesascope.papers.mahankali2024 import _linear_targets, _named, _nonlinear_targets
from mesascope.theory import mahankali2024 as theory

from . import Case, scaled


def more_noise(patch):
    """Labels noisier than theory is told, by a hundredth."""
    right = _linear_targets.LinearRegression
    patch.setattr(
        _linear_targets,
        "LinearRegression",
        lambda dim, law, sigma, prior, noise: right(dim, law, sigma, prior, 1.01 * noise),
    )


def stretched_queries(patch):
    """The layers that are asked read the first coordinate of a query as half as large again."""
    right = _named.trained_layers

    def stretched(settings, prompts):
        layers = right(settings, prompts)
        models = [
            eqx.tree_at(
                lambda m: m.network.layers[0].w_kq, model, replace_fn=lambda w: w.at[..., 0].multiply(1.5)
            )
            for model in layers.arrived
        ]
        return layers._replace(arrived=models)

    patch.setattr(_named, "trained_layers", stretched)


TRAINED = {"seeds": 6, "steps": 800, "prompts": 20_000}

CASES = {
    "mahankali2024/noisy-step": Case({"cases": [[2, 6, 0.5]], "starts": 2}, more_noise, traced=False),
    "mahankali2024/preconditioned-step": Case(
        {"starts": 2}, scaled(theory, "step_size", 1.001), traced=False
    ),
    # a step a tenth too long
    "mahankali2024/nonlinear-targets": Case(
        TRAINED,
        scaled(_nonlinear_targets.theory, "relu_step_size", 1.1),
        traced=False,
    ),
    "mahankali2024/nonlinear-targets-named": Case(
        {
            **TRAINED,
            "tasks": 120,
            "learners": ["gradient-descent", "preconditioned-gradient-descent", "ridge"],
        },
        stretched_queries,
        traced=False,
    ),
}
