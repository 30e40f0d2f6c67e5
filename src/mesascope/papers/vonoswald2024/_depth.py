"""Several trained layers of linear attention, and a trained mesa layer: their losses, and the name of the latter."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from jax import Array

from mesascope.models import SequenceModel, linear_transformer, mesa_transformer
from mesascope.records import Figure, Trace

from .._claim import Claim, Finding, presets
from .._figures import curve, one_panel
from .._intervals import below, mean_interval
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of
from .._shared import shared
from .._still_falling import unless_falling
from ._common import PAPER, PAPER_SIZES, Tested, Training, data, errors_of_seeds, fall_of_errors, trained

_MESA = "1 mesa"


class _Linear(Training):
    scale: float = 0.05


@shared(_Linear)
def linear_layers(settings: _Linear, layers: int) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one stack of this many layers of linear attention per seed."""
    return trained(partial(_linear_start, settings, layers), settings)


def _linear_start(settings: _Linear, layers: int, key: Array) -> SequenceModel:
    return linear_transformer(settings.dim, layers, scale=settings.scale, key=key)


@shared(Training)
def mesa_layers(settings: Training) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one mesa layer per seed; λ starts at 1 and is trained as well."""
    return trained(partial(_mesa_start, settings.dim), settings)


def _mesa_start(dim: int, key: Array) -> SequenceModel:
    return mesa_transformer(dim, 1, key=key, key_size=dim, value_size=dim)


def _depth(settings: _Depth) -> Finding:
    """Losses of one, several and mesa layers, and their errors by context length."""
    recorded = {f"{layers} linear": linear_layers(settings, layers) for layers in settings.layers}
    recorded[_MESA] = mesa_layers(settings)
    curves = {name: errors_of_seeds(models[settings.steps], settings) for name, models in recorded.items()}
    means = {name: mean_interval(found.mean(1)) for name, found in curves.items()}
    linear = [name for name in curves if name != _MESA]
    steps = {
        (before, after): mean_interval(curves[after].mean(1) - curves[before].mean(1))
        for before, after in [*pairwise(linear), *((name, _MESA) for name in linear)]
    }
    falls = {name: fall_of_errors(models, settings) for name, models in recorded.items()}
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
    return one_panel(
        "Linear attention layers and a mesa layer",
        f"Orthogonal transitions, d = {settings.dim}, T = {settings.horizon}",
        *traces,
        xlabel="context length $t$",
        ylabel="mean squared error per coordinate",
        yscale="log",
        caption="Lines: median over the seeds; bands: all seeds. Predicting 0 has the error 1.",
    )


def _named(settings: _Asked) -> Finding:
    """The name that `identify` gives to trained mesa layers."""
    recorded, name = mesa_layers(settings), "ridge"
    found = identify_all(recorded[settings.steps], *data(settings), settings)
    falling = fall_of_errors(recorded, settings)
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": name},
        None,
        unless_falling(identified_as(name, *found), falling),
        {"fall_of_the_loss_in_the_second_half": falling, "seeds": [answer_of(one, name) for one in found]},
    )


class Trained(_Linear, Tested):
    pass


class _Depth(Trained):
    layers: tuple[int, ...] = (1, 2, 4)


class _Asked(Trained, IdentifySettings):
    tasks: int = 300
    learners: tuple[str, ...] = ("gradient-descent", "gradient-descent++", "least-squares", "ridge")


CLAIMS = (
    Claim(
        id=f"{PAPER}/depth-and-mesa-layer",
        title="More linear layers are better, one mesa layer is best",
        evidence="measured, another model",
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
        papers_setting="about 8 h",
    ),
    Claim(
        id=f"{PAPER}/mesa-layer-named",
        title="`identify` names ridge regression for a trained mesa layer",
        evidence="measured, another model",
        origin="ours",
        statement="Asked which algorithm a trained mesa layer runs, `identify` names ridge regression.",
        source="vonoswald2024, equations (4) to (8), where weights are set so; asked of `identify`",
        settings=presets(_Asked(), **PAPER_SIZES),
        check=_named,
        criterion="""The name for every seed. `identify` takes no learner farther than 1 % of the layer's answers for it; a loss
            that still fell by more than a tenth in the second half of the training is undecided.""",
        cost="about 5 h",
    ),
)
