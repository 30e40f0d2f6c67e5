"""Two and three layers at the paper's size: beside its table, and beside ridge regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from mesascope.records import Decision, Figure, Points

from .._claim import Claim, Finding, all_of, presets
from .._figures import one_panel
from .._intervals import above, below, mean_interval
from .._runs import Seeds
from .._still_falling import LARGEST_FALL, loss_between
from ._exact import PAPER
from ._mixed_noise import (
    FULL_SIZES,
    REST,
    TUNED,
    Judging,
    Rivals,
    TrainedLosses,
    judged,
    profiles,
    uniform_noise,
)


def _row(settings: _Row) -> Finding:
    """Trained layers with diagonal heads for every σ_max: the best seed's loss above the oracle's over the table's."""
    table, tolerance = settings.table, settings.tolerance
    found = {
        name: judged(Judging.of(settings, noise=uniform_noise(float(name))), "diagonal") for name in table
    }
    best = {name: float(one.losses.min()) for name, one in found.items()}
    ratios = {name: one.intervals[np.argmin(one.losses)] / table[name] for name, one in found.items()}
    parts = {
        f"σ_max = {name}": loss_between(ends, 1 - tolerance, 1 + tolerance, found[name].falling)
        for name, ends in ratios.items()
    }
    decision = all_of(*parts.values())
    falling = max(one.falling for one in found.values())
    return Finding(
        best,
        dict(table),
        tolerance,
        decision,
        {
            "over_the_table": {
                name: {"best": best[name] / table[name], "interval_95": ratios[name].tolist()}
                for name in found
            },
            "each_seed": {name: one.losses.tolist() for name, one in found.items()},
            "fall_of_the_loss_in_the_second_half": {name: one.falling for name, one in found.items()},
            "meaning": "by σ_max: loss minus that of ridge regression that knows σ, on the same prompts",
        },
        {f"{settings.layers}-layers": _figure(settings, found)},
        parts=parts if len(parts) > 1 else {},
        difference=_still_on_its_way(falling) if decision == "met" and falling > LARGEST_FALL else "",
    )


def _still_on_its_way(falling: float) -> str:
    """What departs from the statement where the loss had not settled."""
    return (
        "The best of five is a value on its way down: the loss above the oracle's still fell by "
        f"{100 * falling:.0f} % in the second half of the training."
    )


def _beside_ridge(settings: _BesideRidge) -> Finding:
    """Two and three layers between ridge regression with one penalty and with the estimated noise."""
    parts: dict[str, Decision] = {}
    measured: dict[str, float] = {}
    details: dict[str, Any] = {}
    for layers, steps in zip(settings.layers, settings.steps, strict=True):
        found = profiles(Rivals.of(settings, layers=layers, steps=steps))
        means, name = found.means(), f"{layers} layers"
        # trained for as long again the loss would not fall by more than this share
        later = means["diagonal"] * (1 - max(found.falling, 0.0))
        ends = {
            "constant": mean_interval(means["constant"] - means["diagonal"]),
            "adaptive": mean_interval(means["adaptive"] - later),
            "tuned": mean_interval(means["tuned"] - later),
        }
        parts |= {
            f"{name} beat one penalty": above(ends["constant"][1], 0.0),
            f"{name} lose more than with the estimate": below(ends["adaptive"][1], 0.0),
            f"{name} lose more than with the tuned estimate": below(ends["tuned"][1], 0.0),
        }
        measured |= {name: float(means["diagonal"].mean())}
        measured |= {rival: float(means[rival].mean()) for rival in ends}
        details[name] = {
            "interval_95": mean_interval(means["diagonal"])[1],
            "margins": {rival: {"mean": mean, "interval_95": end} for rival, (mean, end) in ends.items()},
            "each_seed": means,
            "fall_of_the_loss_in_the_second_half": found.falling,
        }
    return Finding.of_parts(
        measured,
        "both numbers of layers below one penalty, and above the noise estimate, plain and tuned",
        None,
        parts,
        {
            **details,
            "meaning": "losses minus that of ridge regression that knows σ, on the same prompts, drawn for every seed",
        },
    )


def _figure(settings: _Row, found: dict[str, TrainedLosses]) -> Figure:
    table = settings.table
    return one_panel(
        f"Trained layers with diagonal heads, {settings.layers} of them",
        f"d = {settings.dim}, N = {settings.examples}",
        Points(x=[float(s) for s in table], y=list(table.values()), label="the paper's table", series=0),
        Points(
            x=[float(s) for s, one in found.items() for _ in one.losses],
            y=[loss for one in found.values() for loss in one.losses],
            label="trained here, all seeds",
            series=1,
        ),
        xlabel="$\\sigma_{max}$",
        ylabel="loss above the oracle's",
    )


class _Rows(Seeds):
    dim: int = 10
    examples: int = 20
    rate: float = 0.1
    scale: float = 0.05
    batch: int = 256
    levels: int = 10
    prompts: int = 20_000


class _Row(_Rows):
    layers: int
    steps: int
    table: Mapping[str, float]
    tolerance: float = 0.1


class _BesideRidge(_Rows):
    layers: tuple[int, ...] = (2, 3)
    steps: tuple[int, ...] = (600, 2000)
    noise: Mapping[str, Any] = field(default_factory=lambda: uniform_noise(5.0))
    rivals: tuple[str, ...] = ("constant", "adaptive", "tuned")


_REASON = f"""The lowest loss of five seeds lies within a tenth of the table's with its 95 % interval over prompts; that the
    best of five counts is the table's own rule. Under another restriction of the heads, FULL, the paper's own losses of the
    same depth differ by up to 14 %; heads here are restricted less than the paper's. {REST} A loss that meets it and still
    fell as much is told as a difference."""
_HISTORY = "The mean of three seeds was compared before{}."

CLAIMS = (
    Claim(
        id=f"{PAPER}/two-layers",
        title="Two trained layers have the table's loss at σ_max = 5",
        statement="""The best of five trainings of two layers of diagonal heads has the loss above the oracle's that Table 1
            lists for σ_max = 5; in the full preset for σ_max = 0 … 7.""",
        source=f"{PAPER}, Table 1 (two layers, DIAG)",
        origin="paper",
        evidence="measured, another model",
        settings=presets(
            _Row(layers=2, steps=600, table={"5": 0.242}),
            **FULL_SIZES,
            table={
                **{"0": 0.265, "1": 0.214, "2": 0.173, "3": 0.188},
                **{"4": 0.219, "5": 0.242, "6": 0.254, "7": 0.259},
            },
        ),
        check=_row,
        criterion=f"{_REASON} The small preset checks σ_max = 5 only, the full one all eight.",
        history=_HISTORY.format(", with the table's row for full matrices (0.245)"),
        cost="about 6 h",
        papers_setting="about 24 h",
    ),
    Claim(
        id=f"{PAPER}/three-layers",
        title="Three trained layers have the table's loss at σ_max = 5",
        statement="""The best of five trainings of three layers of diagonal heads has the loss above the oracle's that Table 1
            lists for σ_max = 5; in the full preset for σ_max = 0 … 7.""",
        source=f"{PAPER}, Table 1 (three layers, DIAG)",
        origin="paper",
        evidence="measured, another model",
        settings=presets(
            _Row(layers=3, steps=2000, table={"5": 0.118}),
            **FULL_SIZES,
            table={
                **{"0": 0.013, "1": 0.015, "2": 0.048, "3": 0.087},
                **{"4": 0.109, "5": 0.118, "6": 0.121, "7": 0.123},
            },
        ),
        check=_row,
        criterion=f"{_REASON} The small preset checks σ_max = 5 only, the full one all eight.",
        history=_HISTORY.format("; it was 1.14 times the table's"),
        cost="about 9 h",
        papers_setting="about 36 h",
    ),
    Claim(
        id=f"{PAPER}/three-layers-beside-ridge",
        title="Two and three layers beat one penalty, not a noise estimate",
        statement="""Under strong mixed noise two and three layers of diagonal heads come closer to the oracle than ridge
            regression with one penalty, and less close than with the noise estimated, plain or tuned.""",
        source=f"{PAPER}, Table 1 (σ_max = 5: DIAG of two and three layers, CONSTRR, ADARR, TUNEDRR)",
        origin="paper",
        evidence="measured, another model",
        settings=presets(_BesideRidge(), **{**FULL_SIZES, "steps": (50_000, 50_000)}),
        check=_beside_ridge,
        criterion=f"""The 95 % intervals over five seeds of the differences on the same prompts must not reach 0. Against the
            estimates the layers' loss is first lowered by the share that the second half of the training took off, in case it
            would fall as much again. {TUNED}""",
        history="""Two claims, two-layers-beside-ridge and this one, asked before whether so few layers beat all three, which
            the paper says only of deeper networks: by its table they do not. Three seeds were trained before.""",
        cost="about 2 h",
        papers_setting="about 60 h",
    ),
)
