"""Trained deep networks of linear attention, with every block of their weights replaced by a multiple of the identity."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from mesascope.models import SequenceModel
from mesascope.records import Figure, Heatmap, Panel

from .._claim import Claim, Finding, presets
from .._figures import curve
from .._intervals import above, mean_interval
from .._still_falling import loss_between
from ._common import PAPER, PAPER_SIZES, errors_of_seeds, fall_of_errors
from ._depth import Trained, linear_layers

_BLOCKS = ("prediction", "current", "previous")  # of the paired tokens (0; s_t; s_{t−1})


def blocks_of(weights: Any, dim: int) -> np.ndarray:
    """The mean of the diagonal of every d × d block, shape (3, 3), of one head's merged weights (1, 3d, 3d)."""
    return np.einsum("aibi->ab", np.asarray(weights, float)[0].reshape(3, dim, 3, dim)) / dim


def _of_blocks(numbers: np.ndarray, dim: int) -> np.ndarray:
    """Weights (1, 3d, 3d) whose blocks are these multiples of the identity."""
    return np.kron(numbers, np.eye(dim))[None]


def compressed(model: SequenceModel, dim: int) -> SequenceModel:
    """The network with 18 numbers a layer: the multiples of the identity nearest to its blocks."""

    def simpler(layer: Any) -> Any:
        given = (layer.w_kq, layer.w_pv)
        found = tuple(_of_blocks(blocks_of(one, dim), dim).astype(one.dtype) for one in given)
        return eqx.tree_at(lambda one: (one.w_kq, one.w_pv), layer, found)

    layers = tuple(map(simpler, model.network.layers))  # type: ignore[attr-defined]  # a LinearAttentionStack
    return eqx.tree_at(lambda one: one.network.layers, model, layers)


def _share(model: SequenceModel, dim: int) -> float:
    """The part of the squares of all weights that multiples of the identity have."""
    found = wanted = 0.0
    for layer in model.network.layers:  # type: ignore[attr-defined]
        for weights in (layer.w_kq, layer.w_pv):
            found += float(np.sum(_of_blocks(blocks_of(weights, dim), dim) ** 2))
            wanted += float(np.sum(np.asarray(weights, float) ** 2))
    return found / wanted


def _compressed(settings: _Compressed) -> Finding:
    """Errors of trained networks and of their compressed forms, on the same sequences."""
    recorded = linear_layers(settings, settings.layers)
    models = recorded[settings.steps]
    simple = [compressed(model, settings.dim) for model in models]
    trained, shorter = (errors_of_seeds(group, settings) for group in (models, simple))
    more, interval = mean_interval(shorter.mean(1) / trained.mean(1) - 1)
    shares = [_share(model, settings.dim) for model in models]
    share, share_interval = mean_interval(shares)
    falling = fall_of_errors(recorded, settings)
    parts = {
        "the same error": loss_between(interval, -settings.tolerance, settings.tolerance, falling),
        "weights": above(share_interval, settings.share),
    }
    return Finding.of_parts(
        {"error_above_the_trained": more, "share_of_the_squares": share},
        {
            "error_above_the_trained": 0.0,
            "share_of_the_squares": f"above {settings.share}",
        },
        settings.tolerance,
        parts,
        {
            "intervals_95": {
                "error_above_the_trained": interval,
                "share_of_the_squares": share_interval,
            },
            "fall_of_the_loss_in_the_second_half": falling,
            "trained": trained.mean(1).tolist(),
            "compressed": shorter.mean(1).tolist(),
            "shares": shares,
            "numbers_a_layer": 18,
            "meaning": "mean squared error per coordinate, one entry per seed; predicting 0 has 1",
        },
        {"compressed": _figure(models[0], trained, shorter, settings)},
    )


def _figure(model: SequenceModel, trained: Any, shorter: Any, settings: _Compressed) -> Figure:
    lengths = np.arange(2, settings.horizon)
    panels = [
        Panel(
            title=f"{settings.layers} layers, d = {settings.dim}, T = {settings.horizon}",
            xlabel="context length $t$",
            ylabel="mean squared error per coordinate",
            yscale="log",
            traces=(
                *curve(lengths, trained, "trained", 0),
                *curve(lengths, shorter, "compressed", 1),
            ),
        )
    ]
    layers = model.network.layers  # type: ignore[attr-defined]
    for name, title in (("w_kq", "$W^{KQ}$"), ("w_pv", "$W^{PV}$")):
        numbers = np.array([blocks_of(getattr(layer, name), settings.dim).ravel() for layer in layers])
        panels.append(
            Panel(
                title=f"{title}: multiples of I",
                xlabel="block, row by row",
                ylabel="layer",
                traces=(Heatmap(z=numbers, colorlabel="multiple of I"),),
            )
        )
    return Figure(
        title="A trained deep network is 18 numbers a layer",
        panels=tuple(panels),
        caption="Left: median over the seeds, bands: all seeds. Right: one seed; blocks are prediction, current and previous.",
        width="page",
        across=3,
    )


class _Compressed(Trained):
    layers: int = 4
    tolerance: float = 0.02
    share: float = 0.8


CLAIMS = (
    Claim(
        id=f"{PAPER}/compressed-depth",
        title="A deep network keeps its loss with multiples of the identity",
        evidence="measured, another model",
        origin="paper, second-hand",
        statement="""Trained deep stacks of linear attention keep their loss when every d × d block
            of their weights is replaced by the nearest multiple of the identity.""",
        source="""vonoswald2024 (arXiv v2): six layers are described by 0.5 % of their numbers (CompressedAlg-6), as a public
            summary reports it; second-hand; which numbers are left is our choice: 1 in d²""",
        settings=presets(_Compressed(), **PAPER_SIZES, layers=6),
        check=_compressed,
        criterion="""The 95 % intervals over seeds, on the same sequences: errors of compressed and trained networks within 2 %
            of each other, where depth-and-mesa-layer has less than half of the error of one layer; and multiples of the
            identity have more than 0.8 of the squares of all weights. All thresholds are ours.""",
        history="Seeds 0 to 4 had been looked at: compressed networks were better by up to half a per cent.",
        cost="about 8 h",
        papers_setting="about 8 h",
    ),
)
