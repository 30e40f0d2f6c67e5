"""Several trained layers of linear attention, and a trained mesa layer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mesascope.records import Figure, Panel, Trace

from .._claim import Claim, Finding, presets
from .._figures import curve
from .._intervals import below, mean_interval
from .._still_falling import unless_falling
from ._common import PAPER, errors_by_length, fresh_sequences
from ._models import (
    PAPER_SIZES,
    Trained,
    fall_of_linear_layers,
    fall_of_mesa_layers,
    linear_layers,
    mesa_layers,
)

_MESA = "1 mesa"


def _depth(settings: _Depth) -> Finding:
    """Losses of one, several and mesa layers, and their errors by context length."""
    models = {f"{layers} linear": linear_layers(settings, layers) for layers in settings.layers}
    models[_MESA] = mesa_layers(settings)
    curves = {
        name: np.array(
            [
                errors_by_length(model, fresh_sequences(settings, settings.seed + number)).mean(0)
                for number, model in enumerate(trained)
            ]
        )
        for name, trained in models.items()
    }
    means = {name: mean_interval(found.mean(1)) for name, found in curves.items()}
    linear = [name for name in curves if name != _MESA]
    steps = {
        (before, after): mean_interval(curves[after].mean(1) - curves[before].mean(1))
        for before, after in [*pairwise(linear), *((name, _MESA) for name in linear)]
    }
    falls = {f"{layers} linear": fall_of_linear_layers(settings, layers) for layers in settings.layers}
    falls[_MESA] = fall_of_mesa_layers(settings)
    parts = {
        f"{after} below {before}": unless_falling(below(ends, 0.0), falls[after])
        for (before, after), (_, ends) in steps.items()
    }
    return Finding.of_parts(
        {name: center for name, (center, _) in means.items()},
        "each below the one before, one mesa layer below all",
        None,
        parts,
        {
            "intervals_95": {name: interval for name, (_, interval) in means.items()},
            "intervals_95_of_the_differences": {
                f"{after} less {before}": interval for (before, after), (_, interval) in steps.items()
            },
            "fall_of_the_loss_in_the_second_half": falls,
            "each_seed": {name: found.mean(1).tolist() for name, found in curves.items()},
            "meaning": "mean squared error per coordinate, over context lengths 2 … T − 1; predicting 0 has 1",
        },
        {"depth-and-mesa": _figure(curves, settings)},
    )


def _figure(curves: dict[str, np.ndarray], settings: _Depth) -> Figure:
    lengths = np.arange(2, settings.horizon)
    traces: list[Trace] = []
    for series, (name, found) in enumerate(curves.items()):
        traces += curve(lengths, found, f"{name} layer{'' if name.startswith('1 ') else 's'}", series)
    return Figure(
        title="Linear attention layers and a mesa layer",
        panels=(
            Panel(
                title=f"Orthogonal transitions, d = {settings.dim}, T = {settings.horizon}",
                xlabel="context length $t$",
                ylabel="mean squared error per coordinate",
                yscale="log",
                traces=tuple(traces),
            ),
        ),
        caption="Lines: median over the seeds; bands: all seeds. Predicting 0 has the error 1.",
    )


class _Depth(Trained):
    layers: tuple[int, ...] = (1, 2, 4)


CLAIMS = (
    Claim(
        id=f"{PAPER}/depth-and-mesa-layer",
        title="More linear layers are better, one mesa layer is best",
        evidence="measured, reduced",
        origin="paper",
        statement="""The loss of trained layers of linear attention falls with their number, and that of one trained mesa layer
            is lower than that of all of them.""",
        source="""vonoswald2024, Figure 4A, B and D; authors' stored losses
            `experiment_results/linear_seq_fully/seqperf_results_constr_multi.pkl` and `mesa_test_loss.pkl` at commit
            c8c1e37""",
        settings=presets(_Depth(), **PAPER_SIZES, layers=(1, 2, 4, 6)),
        check=_depth,
        criterion="""The 95 % intervals over seeds of all differences lie below 0, on the same sequences: from one to two to
            four (full: to six) linear layers, and from each of them to one mesa layer. A loss that still fell by more than a
            tenth in the second half of the training is undecided.""",
        history="Seeds 0 to 2 were looked at before there were five.",
        cost="about 20 h",
    ),
)
