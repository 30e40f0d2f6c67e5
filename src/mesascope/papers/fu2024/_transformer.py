"""Layers of a trained softmax transformer beside Newton's iterations and gradient steps, through linear probes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.learners import GradientDescent, Newton
from mesascope.models import PromptModel, prompt_transformer
from mesascope.probes import LayerProgress, StepFamily, draw_problems, layer_streams, probed_progress
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Figure, Panel

from .._claim import Claim, Finding, Settings, UnsettledError, all_of, both
from .._figures import curve
from .._intervals import above, between, mean_interval
from .._runs import seeds_of, trained_models
from ._newton import PAPER


def _transformer(settings: Settings) -> Finding:
    """The numbers of iterations and of gradient steps that every layer is nearest to."""
    process, task = LinearRegression(settings["dim"]), FewShot.every(settings["examples"])
    problems = draw_problems(process, task, settings["tasks"], named_key(settings["seed"], "probed prompts"))
    families = {"newton": _iterations(settings), "gradient_descent": _gradient_steps(settings)}
    counts: dict[str, list[np.ndarray]] = {name: [] for name in families}
    alike: dict[str, list[np.ndarray]] = {name: [] for name in families}
    for model in _trained(settings, process, task):
        streams = layer_streams(model, problems)
        for name, family in families.items():
            progress = probed_progress(streams, family, problems)
            counts[name].append(_by_layer(progress, settings["first"]))
            alike[name].append(progress.similarity.value.max(1)[1:])
    newton, descent = np.array(counts["newton"]), np.array(counts["gradient_descent"])  # (seeds, layers)
    first = settings["first"] - 1  # layers before it move the examples together; nothing is predicted yet
    more = [mean_interval(column) for column in np.diff(newton[:, first:], axis=1).T]
    times = [mean_interval(column) for column in np.diff(np.log(descent[:, first:]), axis=1).T]
    last = {name: np.array(rows)[:, -1] for name, rows in alike.items()}
    similar = mean_interval(last["newton"])
    closer = mean_interval(last["newton"] - last["gradient_descent"])
    parts = {
        "iterations": all_of(*(between(ends, *settings["per_layer"]) for _, ends in more)),
        "gradient_steps": all_of(*(above(ends, float(np.log(settings["factor"]))) for _, ends in times)),
        "similarity": above(similar[1], settings["similarity"]),
        "nearer_to_newton": above(closer[1], 0.0),
    }
    least, most = settings["per_layer"]
    return Finding(
        {
            "more_iterations": [mean for mean, _ in more],
            "times_as_many_gradient_steps": [float(np.exp(mean)) for mean, _ in times],
            "similarity_of_the_last_layer": similar[0],
            "similarity_above_that_of_gradient_descent": closer[0],
        },
        {
            "more_iterations": f"{least:g} to {most:g} with every layer",
            "times_as_many_gradient_steps": f"above {settings['factor']} with every layer",
            "similarity_of_the_last_layer": f"above {settings['similarity']}",
            "similarity_above_that_of_gradient_descent": "above 0",
        },
        None,
        all_of(*parts.values()),
        {
            "parts": parts,
            "intervals_95": {
                "more_iterations": [ends for _, ends in more],
                "times_as_many_gradient_steps": [np.exp(ends).tolist() for _, ends in times],
                "similarity_of_the_last_layer": similar[1],
                "similarity_above_that_of_gradient_descent": closer[1],
            },
            "newton_iterations": newton.tolist(),
            "gradient_steps": descent.tolist(),
            "similarities": {name: np.array(rows).tolist() for name, rows in alike.items()},
            "meaning": f"one row per seed, by layer; compared from layer {settings['first']} on",
        },
        {"transformer": _figure(settings, newton, descent)},
    )


def _trained(settings: Settings, process: LinearRegression, task: FewShot) -> list[PromptModel]:
    return trained_models(
        partial(
            _start, settings["dim"], settings["width"], settings["layers"], settings["heads"], task.examples
        ),
        process,
        task,
        seeds_of(settings),
        optimizer=Optimizer("adam", settings["rate"], "cosine", warmup=settings["steps"] // 10, clip=1.0),
        steps=settings["steps"],
        batch=settings["batch"],
        held_out=2,
    )


def _start(dim: int, width: int, layers: int, heads: int, examples: int, key: Array) -> PromptModel:
    return prompt_transformer(dim, width, layers, heads, examples, key=key)


def _iterations(settings: Settings) -> StepFamily:
    counts = np.arange(settings["most_iterations"] + 1)
    return StepFamily("newton", counts, tuple(Newton(1.0, int(count)) for count in counts))


def _gradient_steps(settings: Settings) -> StepFamily:
    most, size = settings["most_steps"], settings["step_size"]
    counts = 2 ** np.arange(3, round(np.log2(most)) + 1)
    return StepFamily(
        "gradient-descent", counts, tuple(GradientDescent(size, int(count)) for count in counts)
    )


def _by_layer(progress: LayerProgress, first: int) -> np.ndarray:
    """The nearest count behind layers 1 … L.

    Raises:
        UnsettledError: from layer `first` on one is the largest of the family, so that more might be nearer.
    """
    counts = np.asarray(progress.nearest.steps.value[1:])
    most = progress.family.steps[-1]
    if np.any(counts[first - 1 :] == most):
        raise UnsettledError(f"a layer is nearest to {most} steps of {progress.family.name}, the most tried")
    return counts


def _figure(settings: Settings, newton: np.ndarray, descent: np.ndarray) -> Figure:
    layers = np.arange(1, newton.shape[1] + 1)
    panel: dict[str, Any] = {"xlabel": "layer"}
    setting = f"d = {settings['dim']}, N = {settings['examples']}"
    return Figure(
        title="Layers of a softmax transformer",
        panels=(
            Panel(
                title=f"In Newton iterations, {setting}",
                ylabel="nearest iteration",
                traces=curve(layers, newton, "median", 0, "all seeds"),
                **panel,
            ),
            Panel(
                title=f"In gradient steps, {setting}",
                ylabel="nearest number of steps",
                yscale="log",
                traces=curve(layers, descent, "median", 1, "all seeds"),
                **panel,
            ),
        ),
        caption=(
            "Which learner a linear probe reads best off every layer. The first layer moves examples together: off it a probe "
            "reads no learner well."
        ),
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/transformer",
        statement=(
            "In a trained softmax transformer every layer from the third on is 1.5 to 6 of Newton's iterations further "
            "than the one before (the paper: about 3) and multiplies the number of gradient steps by more than 1.5; the "
            "errors of the last are like those of Newton's method (mean cosine above 0.8; paper: 0.99), and more than "
            "like those of gradient descent (probes read the learners off the layers; quick: d = 2, N = 6, four layers "
            "of width 32, 1500 steps of 64 prompts, three seeds; paper: d = 20, N = 40, twelve layers of width 256 from "
            "the fifth on, 500 000 steps)."
        ),
        source="fu2024, section 4 and its table of best-matching steps by layer",
        settings=both(
            {
                "dim": 2,
                "examples": 6,
                "width": 32,
                "layers": 4,
                "heads": 4,
                "rate": 0.004,
                "steps": 1500,
                "batch": 64,
                "seed": 0,
                "seeds": 3,
                "tasks": 1000,
                "most_iterations": 40,
                "most_steps": 16_384,
                "step_size": 0.05,
                "first": 2,
                "per_layer": [1.5, 6.0],
                "factor": 1.5,
                "similarity": 0.8,
            },
            dim=20,
            examples=40,
            width=256,
            layers=12,
            heads=8,
            rate=1e-4,
            steps=500_000,
            tasks=4000,
            most_iterations=100,
            most_steps=65_536,
            step_size=0.02,
            first=4,
            similarity=0.99,
        ),
        check=_transformer,
        tolerance_reason=(
            "no distance: the ends of the 95 % intervals over seeds must lie beyond the thresholds, half and twice the "
            "three iterations a layer of the paper, whose gradient steps grow by 1.85 at least (printed cosines: 0.993 "
            "to 0.994)"
        ),
    ),
)
