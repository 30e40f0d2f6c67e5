"""An MLP before linear attention, trained on prompts with nonlinear targets."""

from __future__ import annotations

import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.models import MLP, PromptModel
from mesascope.processes import FewShot, NonlinearRegression, RandomFeatures
from mesascope.records import Figure, Panel, Points, Rule
from mesascope.theory import kim2024 as theory

from .._claim import Claim, Finding, Settings, both, decide
from .._intervals import mean_interval
from .._runs import seeds_of, trained_models
from ._common import PAPER, feature_model


def _start(settings: Settings, key: Array) -> PromptModel:
    """Random features, attention W = I."""
    sizes = (settings["dim"], settings["hidden"], settings["features"])
    return feature_model(MLP.gaussian(sizes, key=key, activation="relu"), np.eye(settings["features"]))


def _trained(process: NonlinearRegression, settings: Settings) -> list[PromptModel]:
    """One model per seed, in the double precision in which they are judged."""
    return trained_models(
        lambda key: _start(settings, key),
        process,
        FewShot(settings["examples"]),
        seeds_of(settings),
        optimizer=Optimizer("adam", settings["rate"], "cosine", clip=1.0),
        steps=settings["steps"],
        batch=settings["batch"],
        precision="float64",
        held_out=2,
    )


def _learned(settings: Settings) -> Finding:
    """Losses beside those of the best attention on inputs and on the targets; spans of the learned features."""
    target = RandomFeatures(settings["targets"], settings["seed"])
    process = NonlinearRegression(settings["dim"], target)
    examples, variance = settings["examples"], 2 / settings["targets"]
    key = named_key(settings["seed"], PAPER, "inputs")
    x = process.law.sample(key, settings["dim"], (settings["inputs"],))
    f = np.asarray(target.feature_values(x))
    affine = np.concatenate([np.asarray(x), np.ones((len(x), 1))], 1)
    inputs = theory.optimal_loss(theory.feature_moments(affine, f), examples, variance)
    own = theory.optimal_loss(theory.feature_moments(f, f), examples, variance)
    losses, left, before = [], [], []
    for number, model in enumerate(_trained(process, settings)):
        start = _start(settings, named_key(settings["seed"] + number, "model"))
        prompts = process.sample(
            named_key(settings["seed"], PAPER, str(number)), examples, settings["prompts"]
        )
        answer = model(prompts.x, prompts.y[:, :-1])
        losses.append(float(np.mean((answer - prompts.y[:, -1]) ** 2) / 2))
        left.append(_outside(model, x, f))
        before.append(_outside(start, x, f))
    (loss, loss_interval), (outside, outside_interval) = mean_interval(losses), mean_interval(left)
    holds = (
        loss_interval[1] < settings["fraction"] * inputs
        and outside_interval[1] < settings["outside"]
        and max(left) < settings["gain"] * min(before)
    )
    return Finding(
        {"loss_over_that_of_inputs": loss / inputs, "targets_outside_of_the_span": outside},
        {
            "loss_over_that_of_inputs": f"below {settings['fraction']}",
            "targets_outside_of_the_span": f"below {settings['outside']}",
        },
        None,
        decide(holds),
        {
            "intervals_95": {"loss": loss_interval, "outside": outside_interval},
            "best_attention_on_inputs_and_1": inputs,
            "best_attention_on_the_targets": own,
            "each_seed": {"loss": losses, "outside": left, "outside_before_training": before},
        },
        {"learned-features": _figure(before, left, losses, inputs, own)},
    )


def _outside(model: PromptModel, x: Array, f: np.ndarray) -> float:
    """The part of the targets outside of the span of the model's features."""
    features = np.asarray(model.embedding.features(x))  # type: ignore[attr-defined]
    return theory.distance_from_span(theory.feature_moments(features, f))


def _figure(before: list[float], left: list[float], losses: list[float], inputs: float, own: float) -> Figure:
    seeds = np.arange(1, len(left) + 1)
    return Figure(
        title="An MLP before linear attention learns the targets' features",
        panels=(
            Panel(
                title="Features",
                xlabel="seed",
                ylabel="targets outside of the span",
                yscale="log",
                traces=(
                    Points(x=seeds, y=before, label="before training"),
                    Points(x=seeds, y=left, label="after training"),
                ),
            ),
            Panel(
                title="Loss",
                xlabel="seed",
                ylabel="loss",
                traces=(
                    Points(x=seeds, y=losses, label="after training", series=1),
                    Rule(value=inputs, label="best attention on (x, 1)"),
                    Rule(value=own, label="best attention on the targets", series=2),
                ),
            ),
        ),
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/learned-features",
        statement=(
            "An MLP followed by linear attention, trained on prompts whose targets are random combinations of four fixed ReLU "
            "features, ends below 0.6 of the loss of the best linear attention on the inputs (and 1), with less than 0.01 of "
            "the targets outside of the span of its features, a third of what every random start has or less (d = 4, N = 40, "
            "16 hidden units and features, W = I at the start, Adam; quick: 500 steps of 128 prompts, three seeds; paper: 10 "
            "targets, d = 10, N = 200, 64 hidden units and features, 20 000 steps of 512, five seeds)."
        ),
        source="kim2024, main claim: nonlinear features are learned in context (qualitative)",
        settings=both(
            {
                "dim": 4,
                "targets": 4,
                "examples": 40,
                "hidden": 16,
                "features": 16,
                "rate": 0.03,
                "steps": 500,
                "batch": 128,
                "seed": 0,
                "seeds": 3,
                "inputs": 50_000,
                "prompts": 10_000,
                "fraction": 0.6,
                "outside": 0.01,
                "gain": 1 / 3,
            },
            dim=10,
            targets=10,
            examples=200,
            hidden=64,
            features=64,
            rate=0.003,
            steps=20_000,
            batch=512,
            seeds=5,
        ),
        check=_learned,
        tolerance_reason="no distance: ends of the 95 % intervals over seeds must lie beyond the thresholds",
    ),
)
