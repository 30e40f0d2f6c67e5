"""Targets that no linear function fits: training still ends at one step on least squares, a shorter one."""

from __future__ import annotations

from functools import partial

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.models import PromptModel
from mesascope.objectives import sample_losses
from mesascope.processes import FewShot, NonlinearRegression, TwoLayerReLU
from mesascope.theory import mahankali2024 as theory

from .._claim import Claim, Finding, Settings, UnsettledError, all_of, both, within
from .._intervals import below, between, mean_interval
from .._runs import seeds_of, trained_models
from .._shared import shared
from ._layer import PAPER, layer_model, random_layer, step_of


def _relu(settings: Settings) -> Finding:
    """Steps and losses of trained layers against the closed form."""
    dim, n, noise = settings["dim"], settings["examples"], settings["noise"]
    process, task = _data(settings)
    best = float(theory.relu_step_size(dim, n, noise**2))
    least = float(theory.relu_least_loss(dim, n, noise**2))
    prompts = process.sample(named_key(settings["seed"], "test"), n, settings["prompts"])
    reference = np.asarray(sample_losses(layer_model(theory.one_step(dim, best)), prompts, task), float)
    z = float((reference.mean() - least) / (reference.std(ddof=1) / len(reference) ** 0.5))
    trained = _trained(settings)
    gaps = [
        float(np.mean(np.asarray(sample_losses(model, prompts, task), float) - reference)) / least
        for model in trained
    ]
    arrived = [number for number, gap in enumerate(gaps) if gap <= min(gaps) + settings["arrived"]]
    if len(arrived) < _FEWEST:
        raise UnsettledError(
            f"{len(arrived)} of {len(trained)} layers came near the lowest loss; take more seeds"
        )
    made = [step_of(trained[number]) for number in arrived]
    each = {
        "step_relative_to_closed_form": [float(np.trace(found)) / dim / best for found, _ in made],
        "distance_from_identity": [_from_identity(found) for found, _ in made],
        "loss_above_the_step": [gaps[number] for number in arrived],
        "other_weights": [others for _, others in made],
    }
    means = {name: mean_interval(values) for name, values in each.items()}
    near, close = settings["within"], settings["loss_within"]
    return Finding(
        {name: center for name, (center, _) in means.items()},
        {
            "step_relative_to_closed_form": 1.0,
            "distance_from_identity": 0.0,
            "loss_above_the_step": 0.0,
            "other_weights": 0.0,
        },
        near,
        all_of(
            within(abs(z), settings["largest_z"]),
            between(means["step_relative_to_closed_form"][1], 1 - near, 1 + near),
            below(means["distance_from_identity"][1], near),
            between(means["loss_above_the_step"][1], -close, close),
            below(means["other_weights"][1], near),
        ),
        {
            "closed_form": best,
            "step_for_linear_targets_relative_to_it": float(theory.step_size(dim, n, noise**2)) / best,
            "intervals_95": {name: interval for name, (_, interval) in means.items()},
            "each_seed_that_arrives": each,
            "arrived": f"{len(arrived)} of {len(trained)}",
            "losses_above_the_step_of_all_seeds": gaps,
            "least_loss": least,
            "z_of_the_least_loss": z,
        },
    )


def _data(settings: Settings) -> tuple[NonlinearRegression, FewShot]:
    targets = TwoLayerReLU(settings["hidden"])
    return NonlinearRegression(settings["dim"], targets, noise=settings["noise"]), FewShot(
        settings["examples"]
    )


@shared("dim", "examples", "noise", "hidden", "scale", "rate", "steps", "batch", "seed", "seeds")
def _trained(settings: Settings) -> list[PromptModel]:
    """Layers from random weights in all entries."""
    return trained_models(
        partial(random_layer, settings["dim"], settings["scale"]),
        *_data(settings),
        seeds_of(settings),
        optimizer=Optimizer("adam", settings["rate"], "cosine", warmup=20),
        steps=settings["steps"],
        batch=settings["batch"],
        held_out=2,
    )


def _from_identity(step: np.ndarray) -> float:
    """The distance of a matrix from a multiple of the identity, relative to that."""
    dim = len(step)
    return float(np.linalg.norm(step / np.trace(step) * dim - np.eye(dim)) / dim**0.5)


_FEWEST = 3  # layers for an interval

CLAIMS = (
    Claim(
        id=f"{PAPER}/nonlinear-targets",
        statement=(
            "Targets drawn from random two-layer ReLU networks, noise 0.5: a trained layer is still one step of gradient "
            "descent on least squares, with η = 1/(n + 2d + 3 + 2σ²), shorter than for linear targets. Of the layers trained "
            "from random weights those within 5 % of the lowest loss have a step within 5 % of that, a preconditioner "
            "within 5 % of a multiple of the identity, all other weights below 5 %, and a loss within 1 % of the closed form's "
            "(quick: d = 3, n = 10, width 20, Adam, 1500 steps of 512 prompts, eight seeds; paper: d = 5, n = 40, width 100, "
            "5000 steps, twelve seeds)."
        ),
        source="mahankali2024, Theorem 3; the closed form of the step is derived here",
        settings=both(
            {
                "dim": 3,
                "examples": 10,
                "noise": 0.5,
                "hidden": 20,
                "scale": 0.1,
                "arrived": 0.05,
                "rate": 0.005,
                "steps": 1500,
                "batch": 512,
                "seeds": 8,
                "prompts": 50_000,
                "seed": 0,
                "within": 0.05,
                "loss_within": 0.01,
                "largest_z": 4.0,
            },
            dim=5,
            examples=40,
            hidden=100,
            steps=5000,
            seeds=12,
        ),
        check=_relu,
        tolerance_reason=(
            "95 % intervals over the seeds that arrive must lie within it; the step for linear targets is farther off than "
            "that, and layers that stay at a local minimum miss the least loss by 14 %; the closed form of the "
            "loss is met within 4 standard errors of the test prompts"
        ),
    ),
)
