"""Targets that no linear function fits: training still ends at one step on least squares, a shorter one."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.models import PromptModel
from mesascope.objectives import sample_losses
from mesascope.processes import FewShot, NonlinearRegression, TwoLayerReLU
from mesascope.theory import mahankali2024 as theory

from .._claim import Claim, Finding, Settings, UnsettledError, all_of, both, within
from .._intervals import below, between, mean_interval
from .._recorded import recorded_models
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall, halves, loss_between, unless_falling
from ._layer import PAPER, layer_model, random_layer, step_of


def _relu(settings: Settings) -> Finding:
    """Steps and losses of trained layers against the closed form."""
    dim, n, noise = settings["dim"], settings["examples"], settings["noise"]
    _, task = data(settings)
    best = float(theory.relu_step_size(dim, n, noise**2))
    least = float(theory.relu_least_loss(dim, n, noise**2))
    prompts = test_prompts(settings)
    reference = np.asarray(sample_losses(layer_model(theory.one_step(dim, best)), prompts, task), float)
    z = float((reference.mean() - least) / (reference.std(ddof=1) / len(reference) ** 0.5))
    layers = trained_layers(settings, prompts)
    gaps = (layers.losses - reference.mean()) / least
    made = [step_of(model) for model in layers.arrived]
    each = {
        "step_relative_to_closed_form": [float(np.trace(found)) / dim / best for found, _ in made],
        "distance_from_identity": [_from_identity(found) for found, _ in made],
        "loss_above_the_step": gaps[layers.numbers].tolist(),
        "other_weights": [others for _, others in made],
    }
    means = {name: mean_interval(values) for name, values in each.items()}
    intervals = {name: interval for name, (_, interval) in means.items()}
    near, close, falling = settings["within"], settings["loss_within"], layers.falling
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
            loss_between(intervals["loss_above_the_step"], -close, close, falling),
            unless_falling(
                all_of(
                    between(intervals["step_relative_to_closed_form"], 1 - near, 1 + near),
                    below(intervals["distance_from_identity"], near),
                    below(intervals["other_weights"], near),
                ),
                falling,
            ),
        ),
        {
            "closed_form": best,
            "step_for_linear_targets_relative_to_it": float(theory.step_size(dim, n, noise**2)) / best,
            "intervals_95": intervals,
            "each_seed_that_arrives": each,
            "arrived": f"{len(layers.arrived)} of {len(gaps)}",
            "losses_above_the_step_of_all_seeds": gaps.tolist(),
            "fall_of_the_loss_in_the_second_half": falling,
            "least_loss": least,
            "z_of_the_least_loss": z,
        },
    )


class Layers(NamedTuple):
    """Trained layers, and which of them came near the lowest loss.

    Attributes:
        losses: of the layers of all seeds at the end.
        numbers: of those that arrived.
        arrived: these layers.
        falling: `fall` of their loss above the noise of the query's label.
    """

    losses: np.ndarray
    numbers: np.ndarray
    arrived: list[PromptModel]
    falling: float


def trained_layers(settings: Settings, prompts: Any) -> Layers:
    """The layers, judged on prompts.

    Raises:
        UnsettledError: too few of them came near the lowest loss for an interval.
    """
    _, task = data(settings)
    recorded = _trained(settings)
    middle, end = (
        np.array([float(sample_losses(model, prompts, task).mean()) for model in models])
        for models in recorded.values()
    )
    least = float(theory.relu_least_loss(settings["dim"], settings["examples"], settings["noise"] ** 2))
    (numbers,) = np.nonzero(end <= end.min() + settings["arrived"] * least)
    if len(numbers) < _FEWEST:
        raise UnsettledError(
            f"{len(numbers)} of {len(end)} layers came near the lowest loss; take more seeds"
        )
    unavoidable = settings["noise"] ** 2 / 2
    return Layers(
        end,
        numbers,
        [recorded[settings["steps"]][number] for number in numbers],
        fall(middle[numbers] - unavoidable, end[numbers] - unavoidable),
    )


def test_prompts(settings: Settings) -> Any:
    """Prompts that nothing was trained on."""
    process, _ = data(settings)
    return process.sample(named_key(settings["seed"], "test"), settings["examples"], settings["prompts"])


def data(settings: Settings) -> tuple[NonlinearRegression, FewShot]:
    """Labels of random two-layer ReLU networks, with noise."""
    targets = TwoLayerReLU(settings["hidden"])
    return NonlinearRegression(settings["dim"], targets, noise=settings["noise"]), FewShot(
        settings["examples"]
    )


@shared("dim", "examples", "noise", "hidden", "scale", "rate", "steps", "batch", "seed", "seeds")
def _trained(settings: Settings) -> dict[int, list[PromptModel]]:
    """Half of the steps and all → one layer per seed, from random weights in all entries."""
    return recorded_models(
        partial(random_layer, settings["dim"], settings["scale"]),
        *data(settings),
        seeds_of(settings),
        halves(settings["steps"]),
        optimizer=Optimizer("adam", settings["rate"], "cosine", warmup=20),
        batch=settings["batch"],
        held_out=2,
    )


def _from_identity(step: np.ndarray) -> float:
    """The distance of a matrix from a multiple of the identity, relative to that."""
    dim = len(step)
    return float(np.linalg.norm(step / np.trace(step) * dim - np.eye(dim)) / dim**0.5)


_FEWEST = 3  # layers for an interval

SETTINGS: dict[str, Any] = {
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
}
PAPER_SIZES: dict[str, Any] = {"dim": 5, "examples": 40, "hidden": 100, "steps": 5000, "seeds": 12}

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
            {**SETTINGS, "within": 0.05, "loss_within": 0.01, "largest_z": 4.0},
            **PAPER_SIZES,
        ),
        check=_relu,
        tolerance_reason=(
            "95 % intervals over the seeds that arrive must lie within it; the step for linear targets is farther off than "
            "that, and layers that stay at a local minimum miss the least loss by 14 %; the closed form of the "
            "loss is met within 4 standard errors of the test prompts; where the loss still fell by more than a tenth in the "
            "second half of the training, nothing is refuted"
        ),
    ),
)
