"""Several trained layers of linear attention, and a trained mesa layer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mesascope.records import Figure, Panel, Trace

from .._claim import Claim, Finding, Settings, all_of, both
from .._figures import curve
from .._intervals import below, mean_interval
from .._still_falling import unless_falling
from ._common import PAPER, errors_by_length, fresh_sequences
from ._models import (
    PAPER_SIZES,
    SCALE,
    TRAINING,
    fall_of_linear_layers,
    fall_of_mesa_layers,
    linear_layers,
    mesa_layers,
)


def _depth(settings: Settings) -> Finding:
    """Losses of one, several and mesa layers, and their errors by context length."""
    models = {f"{layers} linear": linear_layers(settings, layers) for layers in settings["layers"]}
    models["1 mesa"] = mesa_layers(settings)
    curves = {
        name: np.array(
            [
                errors_by_length(model, fresh_sequences(settings, settings["seed"] + number)).mean(0)
                for number, model in enumerate(trained)
            ]
        )
        for name, trained in models.items()
    }
    means = {name: mean_interval(found.mean(1)) for name, found in curves.items()}
    steps = {
        after: mean_interval(curves[after].mean(1) - curves[before].mean(1))
        for before, after in pairwise(curves)
    }
    falls = {f"{layers} linear": fall_of_linear_layers(settings, layers) for layers in settings["layers"]}
    falls["1 mesa"] = fall_of_mesa_layers(settings)
    return Finding(
        {name: center for name, (center, _) in means.items()},
        "each below the one before, by 95 % intervals over seeds of the differences; one mesa layer below all",
        None,
        all_of(*(unless_falling(below(ends, 0.0), falls[after]) for after, (_, ends) in steps.items())),
        {
            "intervals_95": {name: interval for name, (_, interval) in means.items()},
            "intervals_95_of_the_differences_from_the_one_before": {
                name: interval for name, (_, interval) in steps.items()
            },
            "fall_of_the_loss_in_the_second_half": falls,
            "each_seed": {name: found.mean(1).tolist() for name, found in curves.items()},
            "meaning": "mean squared error per coordinate, over context lengths 2 … T − 1; predicting 0 has 1",
        },
        {"depth-and-mesa": _figure(curves, settings)},
    )


def _figure(curves: dict[str, np.ndarray], settings: Settings) -> Figure:
    lengths = np.arange(2, settings["horizon"])
    traces: list[Trace] = []
    for series, (name, found) in enumerate(curves.items()):
        traces += curve(lengths, found, f"{name} layer{'' if name.startswith('1 ') else 's'}", series)
    return Figure(
        title="Linear attention layers and a mesa layer",
        panels=(
            Panel(
                title=f"Orthogonal transitions, d = {settings['dim']}, T = {settings['horizon']}",
                xlabel="context length $t$",
                ylabel="mean squared error per coordinate",
                yscale="log",
                traces=tuple(traces),
            ),
        ),
        caption="Lines: median over the seeds; bands: all seeds. Predicting 0 has the error 1.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/depth-and-mesa-layer",
        statement=(
            "More layers of linear attention are better, and one mesa layer is better than all of them: the loss falls "
            "from one to two to four (paper: to six) linear layers to one mesa layer, each time by the 95 % interval over "
            f"seeds of the difference ({SCALE})."
        ),
        source="vonoswald2024, figures on several linear layers and on the mesa layer",
        settings=both({**TRAINING, "layers": [1, 2, 4]}, **PAPER_SIZES, layers=[1, 2, 4, 6]),
        check=_depth,
        tolerance_reason=(
            "no distance: seed by seed on the same sequences, the interval of every difference must lie below 0"
        ),
    ),
)
