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


def _along_multiples(settings: Settings, loops: int) -> dict[str, Any]:
    """Losses and ratios at multiples of Σ⁻¹, exactly, and the least of all losses there."""
    dim, examples = settings["dim"], settings["examples"]
    best = theory.best_multiple(dim, examples, loops)
    multiples = best * np.asarray(settings["fractions"], float)
    losses = [theory.multiple_loss(a, dim, examples, loops) for a in multiples]
    squares = [theory.multiple_slope(a, dim, examples, loops) ** 2 / dim for a in multiples]
    return {
        "best_multiple": best,
        "least_loss": theory.multiple_loss(best, dim, examples, loops),
        "losses": losses,
        "ratios": [_ratio(loss, square, loops) for loss, square in zip(losses, squares, strict=True)],
    }


def _everywhere(settings: Settings) -> Finding:
    """The inequality as reported, without a condition on the loss, at multiples of Σ⁻¹."""
    cases = {f"{loops}": _along_multiples(settings, loops) for loops in settings["loops"]}
    least = {loops: min(case["ratios"]) for loops, case in cases.items()}
    return Finding(
        {"least_ratio": min(least.values())},
        {"least_ratio": "at least 1"},
        None,
        decide(min(least.values()) >= 1),
        {
            "cases": cases,
            "least_by_loops": least,
            "fractions": settings["fractions"],
            "normalisation": _NORMALISATION,
            "meaning": "ratio of ‖∇_A L‖² to L^{(2L−1)/L}/16; in the figure not below 0.001",
        },
        {"gradient-dominance": _figure(cases, settings)},
    )


def _figure(cases: dict[str, Any], settings: Settings) -> Figure:
    lines = tuple(
        Line(x=settings["fractions"], y=np.maximum(case["ratios"], 1e-3), label=f"L = {loops}")
        for loops, case in cases.items()
    )
    panel = Panel(
        title=f"$A = a Σ^{{-1}}$, d = {settings['dim']}, n = {settings['examples']}",
        xlabel="$a$ / best $a$",
        ylabel="left side / right side",
        yscale="log",
        traces=(*lines, Rule(value=1.0, label="equality")),
    )
    return Figure(title="The reported inequality at multiples of $Σ^{-1}$", panels=(panel,))


def _above(settings: Settings) -> Finding:
    """Where the loss is at least so many times that of the best multiple: at multiples of Σ⁻¹ and at random matrices."""
    examples = settings["examples"]
    groups = [
        drawn_moments(settings, examples, settings["prompts"], f"group {number}")
        for number in range(settings["groups"])
    ]
    ends: dict[str, Any] = {}
    exact: list[float] = []
    verdicts = []
    for loops in settings["loops"]:
        case = _along_multiples(settings, loops)
        floor = settings["floor"] * case["least_loss"]
        pairs = zip(case["losses"], case["ratios"], strict=True)
        exact += [ratio for loss, ratio in pairs if loss >= floor]
        intervals = []
        for m in _matrices(settings, loops):
            drawn = [theory.loss_and_gradient(m, moments, loops) for moments in groups]
            if mean_interval([loss for loss, _ in drawn])[1][0] >= floor:
                ratios = [_ratio(loss, float(np.sum(slope**2)), loops) for loss, slope in drawn]
                intervals.append(mean_interval(ratios)[1])
        verdicts += [above(interval, 1.0) for interval in intervals]
        ends[f"{loops}"] = {
            "matrices": len(intervals),
            "least_lower_end": min(low for low, _ in intervals),
            "least_upper_end": min(high for _, high in intervals),
        }
    low, high = (min(end[f"least_{side}_end"] for end in ends.values()) for side in ("lower", "upper"))
    return Finding(
        {
            "least_ratio_at_multiples": min(exact),
            "least_ratio_at_random_matrices": {"lower_end": low, "upper_end": high},
        },
        {"least_ratio_at_multiples": "at least 1", "least_ratio_at_random_matrices": "lower end at least 1"},
        None,
        all_of(decide(min(exact) >= 1), *verdicts),
        {"loops": ends, "multiples": len(exact), "normalisation": _NORMALISATION},
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


_NORMALISATION = "L = E(ŷ − y)² without ½, Σ = I, Frobenius norm"
_SETTINGS: dict[str, Any] = {
    "dim": 5,
    "examples": 40,
    "loops": [1, 2, 4],
    "fractions": [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0, 1.03, 1.1, 1.25, 1.5],
    "seed": 0,
}

CLAIMS = (
    Claim(
        id=f"{PAPER}/gradient-dominance",
        statement=(
            "‖∇_A L(A, 0)‖² ≥ L(A, 0)^{(2L−1)/L}/16 at every A = aΣ⁻¹, without a condition on the loss, as it was reported to "
            "us (exact; Σ = I, d = 5, n = 40, 1, 2 and 4 loops, L = E(ŷ − y)², a from 0 to 1.5 times the best; both presets)."
        ),
        source=(
            "gatmiry2024, gradient dominance (reported; the report also says that the loss must not be tiny, without a number)"
        ),
        settings=both(_SETTINGS),
        check=_everywhere,
        tolerance_reason="an inequality, both sides exact to 1e-9; at the best multiple the left side is 0 to rounding",
    ),
    Claim(
        id=f"{PAPER}/dominance-above-the-least-loss",
        statement=(
            "‖∇_A L(A, 0)‖² ≥ L(A, 0)^{(2L−1)/L}/16 where the loss is at least twice that of the best multiple of Σ⁻¹: at A = "
            "aΣ⁻¹, exactly, and at random A, symmetric and not (Σ = I, L = E(ŷ − y)²; quick: d = 5, n = 40, 1, 2 and 4 loops, "
            "60 matrices each, eight groups of 500 prompts; paper: d = 10, n = 40, up to 8 loops, 500 matrices, groups of "
            "5000)."
        ),
        source="gatmiry2024, gradient dominance (reported); the condition on the loss is ours",
        origin="ours",
        settings=both(
            {**_SETTINGS, "matrices": 60, "floor": 2.0, "groups": 8, "prompts": 500},
            dim=10,
            loops=[1, 2, 4, 8],
            matrices=500,
            prompts=5000,
        ),
        check=_above,
        tolerance_reason="exact values to 1e-9; ends of 95 % intervals over groups of prompts, the least over all matrices",
    ),
)
