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
from mesascope.records import Band, Figure, Line, Panel, Trace

from .._claim import Claim, Finding, Settings, both, decide
from .._intervals import mean_interval
from .._runs import seeds_of, trained_models
from ._newton import PAPER


def _transformer(settings: Settings) -> Finding:
    """The numbers of iterations and of gradient steps that every layer is nearest to."""
    process, task = LinearRegression(settings["dim"]), FewShot.every(settings["examples"])
    problems = draw_problems(process, task, settings["tasks"], named_key(settings["seed"], "probed prompts"))
    newton, descent, alike = [], [], []
    for model in _trained(settings, process, task):
        streams = layer_streams(model, problems)
        iterations = probed_progress(streams, _iterations(settings), problems)
        newton.append(_by_layer(iterations))
        descent.append(_by_layer(probed_progress(streams, _gradient_steps(settings), problems)))
        alike.append(iterations.similarity.value.max(1)[1:])
    found, steps, similar = np.array(newton), np.array(descent), np.array(alike)  # (seeds, layers)
    first = settings["first"] - 1  # layers before it move the examples together; nothing is predicted yet
    more = mean_interval(found[:, -1] - found[:, first])
    times = mean_interval(np.log(steps[:, -1] / steps[:, first]))
    per_layer, layers = settings["most_per_layer"], found.shape[1] - 1 - first
    linear = more[1][0] > 0 and more[1][1] <= per_layer * layers
    return Finding(
        {
            "more_iterations": more[0],
            "times_as_many_gradient_steps": float(np.exp(times[0])),
            "similarity_of_the_last_layer": float(similar[:, -1].mean()),
        },
        {
            "more_iterations": f"above 0, at most {per_layer * layers}",
            "times_as_many_gradient_steps": f"above {settings['factor']}",
            "similarity_of_the_last_layer": f"above {settings['similarity']}",
        },
        None,
        decide(
            linear
            and np.exp(times[1][0]) > settings["factor"]
            and mean_interval(similar[:, -1])[1][0] > settings["similarity"]
        ),
        {
            "intervals_95": {
                "more_iterations": more[1],
                "times_as_many_gradient_steps": np.exp(times[1]).tolist(),
                "similarity_of_the_last_layer": mean_interval(similar[:, -1])[1],
            },
            "newton_iterations": found.tolist(),
            "gradient_steps": steps.tolist(),
            "similarities": similar.tolist(),
            "meaning": f"one row per seed, by layer; compared are the last layer and layer {settings['first']}",
        },
        {"transformer": _figure(settings, found, steps)},
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


def _by_layer(progress: LayerProgress) -> np.ndarray:
    """The nearest count behind layers 1 … L."""
    return np.asarray(progress.nearest.steps.value[1:])


def _figure(settings: Settings, newton: np.ndarray, descent: np.ndarray) -> Figure:
    layers = np.arange(1, newton.shape[1] + 1)

    def curve(values: np.ndarray, series: int) -> tuple[Trace, ...]:
        band = Band(x=layers, low=values.min(0), high=values.max(0), label="all seeds", series=series)
        return band, Line(x=layers, y=np.median(values, 0), label="median", series=series)

    panel: dict[str, Any] = {"xlabel": "layer"}
    setting = f"d = {settings['dim']}, N = {settings['examples']}"
    return Figure(
        title="Layers of a softmax transformer",
        panels=(
            Panel(
                title=f"In Newton iterations, {setting}",
                ylabel="nearest iteration",
                traces=curve(newton, 0),
                **panel,
            ),
            Panel(
                title=f"In gradient steps, {setting}",
                ylabel="nearest number of steps",
                yscale="log",
                traces=curve(descent, 1),
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
            "In a trained softmax transformer the layers from the second on advance by a few of Newton's iterations "
            "each, and multiply the number of gradient steps by more than 4 from there to the last, whose errors are "
            "like those of Newton's method (mean cosine above 0.8; probes read the learners off the layers; quick: d = "
            "2, N = 6, four layers of width 32, 1500 steps of 64 prompts, three seeds; paper: d = 20, N = 40, twelve "
            "layers of width 256, 500 000 steps)."
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
                "most_iterations": 14,
                "most_steps": 4096,
                "step_size": 0.05,
                "first": 2,
                "most_per_layer": 10,
                "factor": 4.0,
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
            most_steps=16_384,
            step_size=0.02,
            first=4,
            similarity=0.98,
        ),
        check=_transformer,
        tolerance_reason="no distance: the ends of the 95 % intervals over seeds must lie beyond the thresholds",
    ),
)
