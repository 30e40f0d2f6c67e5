"""Augmented tokens of matrices that do not commute: one layer with softmax, with an MLP, and with both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key, split_keys
from mesascope.models import (
    MLP,
    FirstBlock,
    Layer,
    LinearSelfAttention,
    PairedTokens,
    Residual,
    SequenceModel,
    SoftmaxSelfAttention,
    Stack,
)
from mesascope.processes import NextToken
from mesascope.records import Figure, Points, Rule

from .._claim import Claim, Finding, presets
from .._figures import one_panel
from .._intervals import below, mean_interval
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from ._authors import PROGRAM
from ._ends import PAPER
from ._without_commuting import best_step, mean_loss, orthogonal_process

_SCALE = 0.1  # of the weights of linear attention, as in `without-commuting`


def _softmax_and_mlp(settings: _Variants) -> Finding:
    """Losses of all variants on the same test sequences, in units of the best step's."""
    models = {name: _trained(make, settings) for name, make in _VARIANTS.items()}
    process, task = orthogonal_process(settings.dim), NextToken(settings.horizon)
    ratios: dict[str, list[float]] = {name: [] for name in _VARIANTS}
    fitted = []
    for number, seed in enumerate(seeds_of(settings)):
        tokens = process.sample(named_key(seed, "test"), task.horizon, settings.sequences)
        best = best_step(tokens, task)
        fitted.append(best_step(tokens / _size(tokens), task).relative / best.relative)
        for name, found in ratios.items():
            found.append(mean_loss(models[name][number], tokens, task) / best.loss)
    apart = {
        "linear attention with an MLP leaves less than the rescaled step": (ratios["linear, MLP"], fitted),
        "softmax with an MLP leaves more": (ratios["linear, MLP"], ratios["softmax, MLP"]),
        "and less than linear attention alone": (ratios["softmax, MLP"], ratios["linear"]),
    }
    differences = {name: mean_interval(np.subtract(*pair))[1] for name, pair in apart.items()}
    intervals = {name: mean_interval(found) for name, found in ratios.items()}
    return Finding.of_parts(
        {name: center for name, (center, _) in intervals.items()},
        "linear, MLP below the rescaled step; linear, MLP < softmax, MLP < linear",
        None,
        {name: below(interval, 0.0) for name, interval in differences.items()},
        {
            "intervals_95": {name: interval for name, (_, interval) in intervals.items()},
            "intervals_95_of_differences": differences,
            "ratios": ratios,
            "rescaled_step": fitted,
            "meaning": "loss / loss of the best step of gradient descent, on the same test sequences",
        },
        {"softmax-and-mlp": _figure(ratios, fitted, settings)},
    )


def _linear(width: int, key: Array) -> Layer:
    return Residual(LinearSelfAttention.gaussian(width, 1, _SCALE, key=key))


def _softmax(width: int, key: Array) -> Layer:
    return Residual(SoftmaxSelfAttention.gaussian(width, 1, key=key))


def _layer(
    attention: Callable[[int, Array], Layer], mlp: bool, settings: _Variants, key: Array
) -> SequenceModel:
    """Attention on (0; x_t; x_{t−1}), an MLP on its outputs if asked for, and the first block as the answer."""
    attention_key, mlp_key = split_keys(key)
    width = 3 * settings.dim
    layers = [attention(width, attention_key)]
    if mlp:
        layers.append(Residual(MLP.gaussian((width, settings.width, width), key=mlp_key)))
    return SequenceModel(PairedTokens(settings.dim), Stack(layers), FirstBlock(settings.dim))


_VARIANTS: Mapping[str, Callable[[_Variants, Array], SequenceModel]] = {
    "linear": partial(_layer, _linear, False),
    "linear, MLP": partial(_layer, _linear, True),
    "softmax": partial(_layer, _softmax, False),
    "softmax, MLP": partial(_layer, _softmax, True),
}


def _trained(make: Callable[[_Variants, Array], SequenceModel], settings: _Variants) -> list[SequenceModel]:
    process, task, steps = orthogonal_process(settings.dim), NextToken(settings.horizon), settings.steps
    rest = {"warmup": 20, "clip": 1.0}
    return recorded_trainings(partial(make, settings), process, task, [steps], settings, **rest)[steps]


def _size(tokens: Array) -> Array:
    """‖x_t‖ of every sequence: it is the same for all t."""
    return jnp.linalg.norm(tokens[:, :1], axis=-1, keepdims=True)


def _figure(ratios: dict[str, list[float]], fitted: list[float], settings: _Variants) -> Figure:
    return one_panel(
        "One trained layer with softmax and with an MLP",
        f"Haar orthogonal, d = {settings.dim}, T = {settings.horizon}",
        *(
            Points(x=np.array(seeds_of(settings)), y=found, label=name, series=series)
            for series, (name, found) in enumerate(ratios.items())
        ),
        Rule(value=1.0, label="best step of gradient descent"),
        Rule(value=float(np.mean(fitted)), label="best step / $\\|x\\|^2$", series=len(ratios)),
        xlabel="seed",
        ylabel="loss / loss of the best step",
    )


class _Variants(Trainings):
    dim: int = 4
    horizon: int = 10
    width: int = 48
    rate: float = 0.03
    steps: int = 600
    batch: int = 128
    seed: int = 30
    seeds: int = 5
    sequences: int = 20_000


CLAIMS = (
    Claim(
        id=f"{PAPER}/softmax-and-mlp",
        title="With an MLP one layer beats a step rescaled by ‖x‖²",
        evidence="measured, another model",
        origin="ours",
        statement="""For Haar orthogonal W linear attention with an MLP has less loss than every gradient step divided by ‖x‖²;
            softmax in its place leaves more, though less than linear attention alone.""",
        source=f"""found here; setting after sander2024, authors' program {PROGRAM}, augmented.py (Figure 5), which builds an
            MLP (:77-81) that no forward pass calls (:85-88)""",
        settings=presets(_Variants(), dim=5, horizon=50, width=60, steps=5000, seeds=8),
        check=_softmax_and_mlp,
        criterion="""95 % intervals over the seeds of differences on the same test sequences lie below 0. W keeps ‖x_t‖, so that
            a step divided by ‖x‖² suits tokens of every size; its best loss is the vertex of a parabola, as that of the
            best step. Softmax without an MLP decides nothing: its training may stay behind.""",
        history="""Seeds 0 to 4, 10 to 14 and 20 to 24 were looked at with rates 0.01 and 0.02, 20 to 22 also with 0.03, which
            trains best. With every rate some softmax layers without an MLP stay at 1.2, so that these have no part in the
            claim.""",
        cost="about 40 min",
    ),
)
