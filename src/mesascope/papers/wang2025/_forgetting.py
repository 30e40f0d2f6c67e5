"""Weights of the regression problem: forgetting helps if the weights of the data change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mesascope.records import Figure, Line, Panel, Points
from mesascope.theory import wang2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._minimized import bracketed
from ._solvers import PAPER

Error = Callable[[float], float]


def _of_sums(settings: _Forgetting, drift: float) -> Error:
    """Decay → the exact error of linear attention with this decay and its best gain, which is a quadratic minimum."""
    inputs = theory.gaussian_inputs(np.eye(settings.dim))

    def error(decay: float) -> float:
        zero, plus, minus = (
            theory.squared_errors(
                theory.linear_attention(1.0, decay),
                inputs,
                settings.examples,
                drift=drift,
                noise=settings.noise,
                gain=gain,
            )[-1]
            for gain in (0.0, 1.0, -1.0)
        )
        return float(zero - (minus - plus) ** 2 / (8 * (plus + minus - 2 * zero)))

    return error


def _best_decay(settings: _Forgetting, drift: float) -> tuple[float, float, float]:
    """The best decay, its error, and that of decay 1."""
    error = _of_sums(settings, drift)
    best = bracketed(error, np.linspace(settings.lowest, settings.highest, settings.tried), halvings=14)
    return float(best.point[0]), best.value, error(1.0)


def _forgetting(settings: _Forgetting) -> Finding:
    """The best decay without drift, and with each drift."""
    found = np.array([_best_decay(settings, drift) for drift in (0.0, *settings.drifts)])
    decays, errors, kept = found.T
    parts = {
        "no drift: decay 1": within(abs(decays[0] - 1), settings.tolerance),
        "drift: decay below 1": verdict_if(bool((decays[1:] < 1 - settings.tolerance).all())),
        "more drift, less decay": verdict_if(bool((np.diff(decays) < 0).all())),
        "lower errors": verdict_if(bool((errors[1:] < kept[1:]).all())),
    }
    return Finding.of_parts(
        {"best decay": decays.tolist(), "error": errors.tolist(), "error with decay 1": kept.tolist()},
        {"best decay": "1 without drift, else less than 1 and falling"},
        settings.tolerance,
        parts,
        {"drifts": (0.0, *settings.drifts)},
        {"forgetting": _figure(settings, decays, errors, kept)},
    )


def _figure(settings: _Forgetting, decays: np.ndarray, errors: np.ndarray, kept: np.ndarray) -> Figure:
    drifts = (0.0, *settings.drifts)
    size = f"d = {settings.dim}, N = {settings.examples}, σ = {settings.noise:g}"
    return Figure(
        title="Forgetting and drifting weights",
        panels=(
            Panel(
                title=size,
                xlabel="drift δ of the weights",
                ylabel="best decay",
                traces=(
                    Line(x=drifts, y=decays, label="best decay", series=0),
                    Points(x=drifts, y=decays, label="best decay", series=0),
                ),
            ),
            Panel(
                title="What it gains",
                xlabel="drift δ of the weights",
                ylabel="error with decay 1 / error with the best",
                traces=(
                    Line(x=drifts, y=kept / errors, label="exact", series=1),
                    Points(x=drifts, y=kept / errors, label="exact", series=1),
                ),
            ),
        ),
        caption="Linear attention with a decay of its sum and the gain that is best for it.",
    )


class _Forgetting(Settings):
    dim: int = 4
    examples: int = 20
    noise: float = 0.3
    drifts: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
    lowest: float = 0.4
    highest: float = 1.1
    tried: int = 36
    tolerance: float = 1e-4


CLAIMS = (
    Claim(
        id=f"{PAPER}/forgetting",
        title="Forgetting helps linear attention where weights drift, and only there",
        evidence="exact",
        origin="ours",
        statement="""In four dimensions, after 20 examples, linear attention's best decay is 1 if the weights stand still; it is
            less than 1 if they walk at random, less for larger steps.""",
        source="""wang2025, abstract (arXiv: regression weights as a choice of design; gates are such weights); the exact
            errors are derived here""",
        settings=presets(_Forgetting()),
        check=_forgetting,
        criterion="""Each decay has the gain that is best for it. The best decay without drift is 1 to 10⁻⁴, about the root
            of the precision of errors; with drift it is
            less by more than that, falls with each larger drift, and its error is lower than that of decay 1. Decays
            up to 1.1 are tried.""",
    ),
)
