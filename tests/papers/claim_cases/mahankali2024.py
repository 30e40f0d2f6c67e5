"""How the claims of mahankali2024 are tested."""

import equinox as eqx

from mesascope.papers.mahankali2024 import _linear_targets, _nonlinear_targets
from mesascope.theory import mahankali2024 as theory

from . import Case, scaled


def more_noise(patch):
    """Labels with a hundredth more noise than the formulas assume."""
    right = _linear_targets.LinearRegression
    patch.setattr(
        _linear_targets,
        "LinearRegression",
        lambda dim, law, sigma, prior, noise: right(dim, law, sigma, prior, 1.01 * noise),
    )


def first_start_only(patch):
    """All starts are the first one, from which the search ends at a layer of rank one."""
    right = _linear_targets._starts
    patch.setattr(_linear_targets, "_starts", lambda *sizes: [right(*sizes)[0]] * 6)


def one_step_for_all(patch):
    """The closed form of the step is that for linear targets."""
    patch.setattr(theory, "relu_step_size", theory.step_size)


def stretched(patch):
    """Trained layers read the first coordinate of a query as half as large again."""
    right = _nonlinear_targets.trained_layers

    def wrong(settings, prompts):
        layers = right(settings, prompts)
        models = [
            eqx.tree_at(
                lambda m: m.network.layers[0].w_kq, model, replace_fn=lambda w: w.at[..., 0].multiply(1.5)
            )
            for model in layers.arrived
        ]
        return layers._replace(arrived=models)

    patch.setattr(_nonlinear_targets, "trained_layers", wrong)


TRAINED = {"seeds": 6, "steps": 800, "prompts": 20_000}

CASES = {
    "mahankali2024/noisy-step": Case(
        {"cases": [[2, 6, 0.5]]},
        more_noise,
        stuck=first_start_only,
        traced=False,
    ),
    "mahankali2024/preconditioned-step": Case(
        {},
        scaled(theory, "step_size", 1.001),
        stuck=first_start_only,
        traced=False,
    ),
    # a step too long loses more than its closed form says
    "mahankali2024/nonlinear-targets": Case(
        TRAINED,
        scaled(theory, "relu_step_size", 1.3),
        (stretched, scaled(theory, "relu_least_loss", 0.93)),
        traced=False,
    ),
    "mahankali2024/nonlinear-targets-named": Case(
        {
            **TRAINED,
            "tasks": 120,
            "learners": ["gradient-descent", "preconditioned-gradient-descent", "ridge"],
        },
        stretched,
        (one_step_for_all, scaled(theory, "relu_step_size", 1.1)),
        traced=False,
    ),
}
