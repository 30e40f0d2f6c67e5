"""Softmax transformers on single tokens: the first layer binds every token to the one before."""

from __future__ import annotations

from functools import partial

import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import SequenceModel, transformer
from mesascope.probes import CopyAttention, copy_attention, draw_problems
from mesascope.records import Figure, Line

from .._claim import Claim, Finding, all_of, presets
from .._figures import curve, one_panel
from .._intervals import above
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import unless_falling
from ._common import PAPER, PAPER_SIZES, Tested, Training, data, errors_of_seeds, fall_of_errors, trained


class SoftmaxTraining(Training):
    width: int = 32
    layers: int = 2
    heads: int = 4


SOFTMAX_SIZES = PAPER_SIZES | {"width": 128, "rate": 0.001}


def _start(settings: SoftmaxTraining, key: Array) -> SequenceModel:
    return transformer(
        settings.dim, settings.width, settings.layers, settings.heads, settings.horizon, key=key
    )


@shared(SoftmaxTraining)
def softmax_networks(settings: SoftmaxTraining) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one softmax transformer per seed."""
    return trained(partial(_start, settings), settings)


def _copying(settings: _Copying) -> Finding:
    """Attention of the first layer to the token before, trained and at the start."""
    problems = draw_problems(*data(settings), settings.tasks, named_key(settings.seed, "copying"))
    starts = [_start(settings, named_key(seed, "model")) for seed in seeds_of(settings)]
    recorded = softmax_networks(settings)
    models, falling = recorded[settings.steps], fall_of_errors(recorded, settings)
    before, after = ([copy_attention(model, problems) for model in group] for group in (starts, models))
    threshold = settings.factor * after[0].baseline
    intervals = [[float(found.score.low), float(found.score.high)] for found in after]
    return Finding(
        {"least_attention_to_the_token_before": min(float(found.score.value) for found in after)},
        {"least_attention_to_the_token_before": f"above {settings.factor:g} × {after[0].baseline:.3g}"},
        None,
        all_of(*(unless_falling(above(interval, threshold), falling) for interval in intervals)),
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "intervals_95": intervals,
            "each_seed": [float(found.score.value) for found in after],
            "before_training": [float(found.score.value) for found in before],
            "mean_squared_errors": errors_of_seeds(models, settings).mean(1).tolist(),
            "meaning": "the head of the first layer that looks most at the token before, mean over positions and sequences, "
            "with intervals over sequences; all tokens alike give the baseline",
        },
        {"copying": _figure(before, after, settings)},
    )


def _figure(before: list[CopyAttention], after: list[CopyAttention], settings: _Copying) -> Figure:
    positions = after[0].positions
    heads = [[one.each.value[int(np.argmax(one.heads.value))] for one in group] for group in (after, before)]
    return one_panel(
        "The first softmax layer looks at the token before",
        f"d = {settings.dim}, T = {settings.horizon}",
        *curve(positions, heads[0], "trained", 0),
        *curve(positions, heads[1], "at the start", 1),
        Line(x=positions, y=1 / positions, label="all tokens alike", series="theory"),
        xlabel="token $t$",
        ylabel="attention to token $t − 1$",
        caption="The head that copies most; lines: median over the seeds, bands: all seeds.",
    )


class _Copying(SoftmaxTraining, Tested):
    sequences: int = 2000
    tasks: int = 500
    factor: float = 2.0


CLAIMS = (
    Claim(
        id=f"{PAPER}/copying",
        title="The first softmax layer learns to look at the token before",
        evidence="measured, another model",
        origin="paper",
        statement="""In a softmax Transformer that reads single tokens, training makes the first layer bind every token to the
            one before it.""",
        source="""vonoswald2024, section 'Aggregate internal token representations develop through training', Figures 2A, 3A,
            14, 16 and 17; authors' `run_sensitivity_experiments.ipynb`, cells 7 and 9""",
        settings=presets(
            _Copying(),
            **SOFTMAX_SIZES,
            factor=4.0,
        ),
        check=_copying,
        criterion="""For every seed the 95 % interval over sequences of the attention to the token before, of the head that
            looks at it most, lies above twice (full: four times) what looking at all tokens alike would give. The factors are
            ours: how sharp the head becomes differs much between seeds. A loss that still fell by more than a tenth in the
            second half of the training is undecided.""",
        history="Seeds 0 to 2 were looked at before there were five.",
        cost="about 15 h",
        papers_setting="about 2 h",
    ),
)
