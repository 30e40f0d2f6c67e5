"""How fast the loss falls where it is large: the reported inequality between the loss and its gradient in A."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.records import Figure, Line, Panel, Rule
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, Settings, all_of, both, decide
from .._intervals import above, mean_interval
from ._common import PAPER, drawn_moments


def _ratio(loss: float, squared: float, loops: int) -> float:
    """‖∇L‖²/(L^{(2L−1)/L}/16), at least 1 where the inequality holds."""
    return 16 * squared / loss ** ((2 * loops - 1) / loops)


def _everywhere(settings: Settings) -> Finding:
    """At multiples of Σ⁻¹, exactly: where the loss is large, and at the best one."""
    dim, examples = settings["dim"], settings["examples"]
    cases: dict[str, Any] = {}
    far, at_best = [], []
    for loops in settings["loops"]:
        best = theory.best_multiple(dim, examples, loops)
        multiples = best * np.asarray(settings["fractions"], float)
        losses = [theory.multiple_loss(a, dim, examples, loops) for a in multiples]
        squares = [theory.multiple_slope(a, dim, examples, loops) ** 2 / dim for a in multiples]
        ratios = [_ratio(loss, square, loops) for loss, square in zip(losses, squares, strict=True)]
        cases[f"{loops}"] = {"best_multiple": best, "losses": losses, "ratios": ratios}
        least = theory.multiple_loss(best, dim, examples, loops)
        large = settings["floor"] * least
        far += [ratio for ratio, loss in zip(ratios, losses, strict=True) if loss >= large]
        at_best.append(_ratio(least, theory.multiple_slope(best, dim, examples, loops) ** 2 / dim, loops))
    lines = tuple(
        Line(x=settings["fractions"], y=np.maximum(case["ratios"], 1e-3), label=f"L = {loops}")
        for loops, case in cases.items()
    )
    panel = Panel(
        title=f"$A = a Σ^{{-1}}$, d = {dim}, n = {examples}",
        xlabel="$a$ / best $a$",
        ylabel="left side / right side",
        yscale="log",
        traces=(*lines, Rule(value=1.0, label="equality")),
    )
    return Finding(
        {"least_ratio_where_the_loss_is_large": min(far), "ratio_at_the_best_multiple": max(at_best)},
        {"least_ratio_where_the_loss_is_large": "at least 1", "ratio_at_the_best_multiple": "below 1"},
        None,
        decide(min(far) >= 1 and max(at_best) < 1),
        {
            "cases": cases,
            "fractions": settings["fractions"],
            "normalisation": "L = E(ŷ − y)² without ½, Σ = I, Frobenius norm",
            "meaning": "ratio of ‖∇_A L‖² to L^{(2L−1)/L}/16; in the figure not below 0.001",
        },
        {
            "gradient-dominance": Figure(
                title="The reported inequality at multiples of $Σ^{-1}$", panels=(panel,)
            )
        },
    )


def _above(settings: Settings) -> Finding:
    """At random matrices whose loss is at least so many times that of the best multiple."""
    dim, examples = settings["dim"], settings["examples"]
    groups = [
        drawn_moments(settings, examples, settings["prompts"], f"group {number}")
        for number in range(settings["groups"])
    ]
    ends: dict[str, Any] = {}
    verdicts = []
    for loops in settings["loops"]:
        floor = settings["floor"] * theory.multiple_loss(
            theory.best_multiple(dim, examples, loops), dim, examples, loops
        )
        intervals = []
        for m in _matrices(settings, loops):
            pairs = [theory.loss_and_gradient(m, moments, loops) for moments in groups]
            if mean_interval([loss for loss, _ in pairs])[1][0] >= floor:
                ratios = [_ratio(loss, float(np.sum(slope**2)), loops) for loss, slope in pairs]
                intervals.append(mean_interval(ratios)[1])
        verdicts += [above(interval, 1.0) for interval in intervals]
        ends[f"{loops}"] = {
            "matrices": len(intervals),
            "least_lower_end": min(low for low, _ in intervals),
            "least_upper_end": min(high for _, high in intervals),
        }
    low, high = (min(end[f"least_{side}_end"] for end in ends.values()) for side in ("lower", "upper"))
    return Finding(
        {"least_ratio_lower_end": low, "least_ratio_upper_end": high},
        {"least_ratio_lower_end": "at least 1"},
        None,
        all_of(*verdicts),
        {"loops": ends, "normalisation": "L = E(ŷ − y)² without ½, Σ = I, Frobenius norm"},
    )


def _matrices(settings: Settings, loops: int) -> list[np.ndarray]:
    """c(I + sG) with random c in [0, 2] and s in [0, 1], G Gaussian, every second one symmetric."""
    rng, dim = np.random.default_rng([settings["seed"], loops]), settings["dim"]
    found = []
    for number in range(settings["matrices"]):
        draws = rng.normal(size=(dim, dim)) / dim**0.5
        noise = draws if number % 2 else (draws + draws.T) / 2
        found.append(rng.uniform(0, 2) * (np.eye(dim) + rng.uniform() * noise))
    return found


CLAIMS = (
    Claim(
        id=f"{PAPER}/gradient-dominance",
        statement=(
            "At A = aΣ⁻¹ ‖∇_A L(A, 0)‖² ≥ L(A, 0)^{(2L−1)/L}/16 holds wherever the loss is at least twice the least one, and "
            "cannot hold without some such condition: at the best multiple the gradient vanishes and the loss does not (exact; "
            "Σ = I, d = 5, n = 40, 1, 2 and 4 loops, L = E(ŷ − y)²; both presets)."
        ),
        source=(
            "gatmiry2024, gradient dominance (reported for losses that are not tiny, in words that do not say how small); "
            "the condition here is ours"
        ),
        settings=both(
            {
                "dim": 5,
                "examples": 40,
                "loops": [1, 2, 4],
                "floor": 2.0,
                "fractions": [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0, 1.03, 1.1, 1.25, 1.5],
                "seed": 0,
            }
        ),
        check=_everywhere,
        tolerance_reason="an inequality, both sides exact to 1e-9; at the best multiple the left side is 0 to rounding",
    ),
    Claim(
        id=f"{PAPER}/dominance-above-the-least-loss",
        statement=(
            "‖∇_A L(A, 0)‖² ≥ L(A, 0)^{(2L−1)/L}/16 holds at random A, symmetric and not, whose loss is at least twice that of "
            "the best multiple of Σ⁻¹ (Σ = I, L = E(ŷ − y)²; quick: d = 5, n = 40, 1, 2 and 4 loops, 60 matrices each, eight "
            "groups of 500 prompts; paper: d = 10, n = 40, up to 8 loops, 500 matrices, groups of 5000)."
        ),
        source="gatmiry2024, gradient dominance (reported); the condition on the loss is ours",
        origin="ours",
        settings=both(
            {
                "dim": 5,
                "examples": 40,
                "loops": [1, 2, 4],
                "matrices": 60,
                "floor": 2.0,
                "groups": 8,
                "prompts": 500,
                "seed": 0,
            },
            dim=10,
            loops=[1, 2, 4, 8],
            matrices=500,
            prompts=5000,
        ),
        check=_above,
        tolerance_reason="ends of 95 % intervals over groups of prompts, the least over all matrices",
    ),
)
