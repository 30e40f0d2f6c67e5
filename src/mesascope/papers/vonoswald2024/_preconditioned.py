"""What linear probes read off trained deep networks: inputs preconditioned by the inverse of the context's second moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.models import SequenceModel
from mesascope.probes import LinearProbe, Problems, draw_problems, layer_streams, linear_probe
from mesascope.processes import NextToken
from mesascope.records import Figure, Panel

from .._claim import Claim, Finding, presets
from .._figures import curve
from .._intervals import above, mean_interval
from .._runs import seeds_of
from .._still_falling import unless_falling
from ._common import PAPER, PAPER_SIZES, data, fall_of_errors
from ._depth import Trained, linear_layers


def _preconditioned(problems: Problems, regularization: float) -> np.ndarray:
    """(Σ_{i≤n} x_i x_iᵀ + I/λ)⁻¹ q_n of every problem after n = 0 … N examples, shape (batch, N + 1, d)."""
    x, queries = np.asarray(problems.x, float), np.asarray(problems.queries, float)
    grams = np.cumsum(np.einsum("bni,bnj->bnij", x, x), 1)
    grams = np.concatenate([np.zeros_like(grams[:, :1]), grams], 1) + np.eye(x.shape[-1]) / regularization
    return np.asarray(np.linalg.solve(grams, queries[..., None])[..., 0])


def _probed(model: SequenceModel, settings: _Probed, seed: int) -> dict[str, LinearProbe]:
    """Probes of the preconditioned input and of the next token at the last position, layer by layer."""
    process, task = data(settings)
    last = NextToken.last(task.horizon)
    problems = draw_problems(process, last, settings.tasks, named_key(seed, "probed sequences"))
    streams = layer_streams(model, problems)
    wanted = {"preconditioned input": _preconditioned(problems, settings.regularization), "next token": None}
    return {name: linear_probe(streams, problems, targets) for name, targets in wanted.items()}


def _check(settings: _Probed) -> Finding:
    """R² of the probes after every layer, for the first half of the layers each beside that before."""
    recorded = linear_layers(settings, settings.layers)
    models = recorded[settings.steps]
    probes = [_probed(model, settings, seed) for model, seed in zip(models, seeds_of(settings), strict=True)]
    # target → (seeds, layers + 1)
    scores = {name: np.array([np.asarray(one[name].r_squared.value) for one in probes]) for name in probes[0]}
    controls = np.array([np.asarray(one["preconditioned input"].control.value) for one in probes])
    falling, read = fall_of_errors(recorded, settings), scores["preconditioned input"]
    rises = {
        f"layer {layer}": mean_interval(read[:, layer] - read[:, layer - 1])
        for layer in range(1, settings.layers // 2 + 1)
    }
    half = settings.layers // 2
    selective, selective_interval = mean_interval(read[:, half] - controls[:, half])
    parts = {
        f"better after {name}": unless_falling(above(ends, 0.0), falling) for name, (_, ends) in rises.items()
    }
    parts["no accident"] = unless_falling(above(selective_interval, settings.selectivity), falling)
    return Finding.of_parts(
        {
            "r_squared": read.mean(0).tolist(),
            "rises": {name: rise for name, (rise, _) in rises.items()},
            "above_the_control": selective,
        },
        {"rises": "above 0", "above_the_control": f"above {settings.selectivity}"},
        None,
        parts,
        {
            "intervals_95_of_the_rises": {name: ends for name, (_, ends) in rises.items()},
            "interval_95_above_the_control": selective_interval,
            "fall_of_the_loss_in_the_second_half": falling,
            "r_squared_of_each_seed": {name: table.tolist() for name, table in scores.items()},
            "meaning": "R² of linear probes at the last position, after the embedding and after every layer",
        },
        {"preconditioned": _figure(scores, controls, settings)},
    )


def _figure(scores: dict[str, np.ndarray], controls: np.ndarray, settings: _Probed) -> Figure:
    layers: Any = np.arange(settings.layers + 1)
    return Figure(
        title="What linear probes read off a deep network of linear attention",
        panels=(
            Panel(
                title=f"{settings.layers} layers, d = {settings.dim}, t = {settings.horizon - 1}",
                xlabel="layers before the probe",
                ylabel="$R^2$ of linear probes",
                traces=(
                    *curve(layers, scores["preconditioned input"], "preconditioned input", 0),
                    *curve(layers, scores["next token"], "next token", 1),
                    *curve(layers, controls, "control", 2),
                ),
            ),
        ),
        caption="Lines: median over the seeds; bands: all seeds. Control: preconditioned inputs of other sequences.",
    )


class _Probed(Trained):
    layers: int = 4
    tasks: int = 3000
    regularization: float = 1.0
    selectivity: float = 0.5


CLAIMS = (
    Claim(
        id=f"{PAPER}/preconditioned-inputs",
        title="Early layers precondition the inputs",
        evidence="measured, another model",
        origin="paper, second-hand",
        statement="""In trained deep stacks of linear attention a linear probe reads the preconditioned input, (Σ s_i s_iᵀ +
            I/λ)⁻¹ s_t, better after each of the first half of the layers than before it.""",
        source="""vonoswald2024 (arXiv v2), probes of preconditioned inputs by depth, as a public summary reports them;
            second-hand: the paper's figure was not read""",
        settings=presets(_Probed(), **PAPER_SIZES, layers=6),
        check=_check,
        criterion="""The 95 % intervals over seeds of the rise of R² with each of these layers, on the same sequences, lie above
            0, and after half of the layers R² is more than 0.5 above that of the control, the inputs of other sequences. Later
            layers need not keep what they have used.""",
        history="""Seeds 0 to 4 had been looked at with another probe, for λ = 0.1, 1 and 10, when λ and the half were chosen:
            after the second half of the layers they are read no better.""",
        cost="about 8 h",
        papers_setting="about 8 h",
    ),
)
