"""How fast the loss falls where it is large: an inequality between the loss and its gradient in A."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.records import Figure, Line, Panel, Rule
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, presets, verdict_if
from ._common import PAPER, Inputs, exact_loss


def _ratio(loss: float, squared: float, loops: int) -> float:
    """‖∇ℓ‖²/(ℓ^{(2L−1)/L}/16), at least 1 where the inequality holds."""
    return 16 * squared / loss ** ((2 * loops - 1) / loops)


def _along_multiples(settings: _Dominance, loops: int) -> dict[str, Any]:
    """Losses and ratios at multiples of Σ⁻¹, exactly, and the least of all losses there."""
    sizes = (settings.dim, settings.examples, loops)
    best = theory.best_multiple(*sizes)
    multiples = best * np.asarray(settings.fractions, float)
    losses = [theory.multiple_loss(a, *sizes) for a in multiples]
    squares = [theory.multiple_slope(a, *sizes) ** 2 / settings.dim for a in multiples]
    return {
        "best_multiple": best,
        "least_loss": theory.multiple_loss(best, *sizes),
        "losses": losses,
        "ratios": [_ratio(loss, square, loops) for loss, square in zip(losses, squares, strict=True)],
    }


def _figure(cases: dict[str, Any], settings: _Dominance) -> Figure:
    lines = tuple(
        Line(x=settings.fractions, y=np.maximum(case["ratios"], 1e-3), label=f"L = {loops}")
        for loops, case in cases.items()
    )
    panel = Panel(
        title=f"$A = a Σ^{{-1}}$, d = {settings.dim}, n = {settings.examples}",
        xlabel="$a$ / best $a$",
        ylabel="left side / right side",
        yscale="log",
        traces=(*lines, Rule(value=1.0, label="equality")),
    )
    return Figure(title="Gradient dominance at multiples of $Σ^{-1}$", panels=(panel,))


def _above(settings: _Dominance) -> Finding:
    """The inequality where the loss is large enough: at multiples of Σ⁻¹ and at random matrices."""
    cases: dict[str, Any] = {}
    at_multiples: list[float] = []
    at_random: dict[str, list[float]] = {}
    for loops in settings.loops:
        cases[f"{loops}"] = case = _along_multiples(settings, loops)
        floor = settings.floor * case["least_loss"]
        pairs = zip(case["losses"], case["ratios"], strict=True)
        at_multiples += [ratio for loss, ratio in pairs if loss >= floor]
        exact = exact_loss(settings.dim, settings.examples, loops)
        found = [(float(loss), np.asarray(slope)) for loss, slope in map(exact, _matrices(settings, loops))]
        at_random[f"{loops}"] = [
            _ratio(loss, float(np.sum(slope**2)), loops) for loss, slope in found if loss >= floor
        ]
    least = {
        "least_ratio_at_multiples": min(at_multiples),
        "least_ratio_at_random_matrices": min(map(min, at_random.values())),
    }
    parts = {
        "at multiples of Σ⁻¹": verdict_if(least["least_ratio_at_multiples"] >= 1),
        "at random matrices": verdict_if(least["least_ratio_at_random_matrices"] >= 1),
    }
    return Finding.of_parts(
        least,
        dict.fromkeys(least, "at least 1"),
        None,
        parts,
        {
            "loops": {
                name: {"matrices": len(ratios), "least": min(ratios)} for name, ratios in at_random.items()
            },
            "matrices": sum(map(len, at_random.values())),
            "multiples": len(at_multiples),
            "along_multiples": cases,
            "fractions": settings.fractions,
            "normalisation": _NORMALISATION,
            "meaning": "ratio of ‖∇_A ℓ‖² to ℓ^{(2L−1)/L}/16, ℓ the loss; in the figure not below 0.001",
        },
        {"gradient-dominance": _figure(cases, settings)},
    )


def _matrices(settings: _Dominance, loops: int) -> list[np.ndarray]:
    """c(I + sG) with random c in [0, 2] and s in [0, 1], G Gaussian, every second one symmetric."""
    rng, dim = np.random.default_rng([settings.seed, loops]), settings.dim
    found = []
    for number in range(settings.matrices):
        draws = rng.normal(size=(dim, dim)) / dim**0.5
        noise = draws if number % 2 else (draws + draws.T) / 2
        found.append(rng.uniform(0, 2) * (np.eye(dim) + rng.uniform() * noise))
    return found


_NORMALISATION = "ℓ = E(ŷ − y)² without ½, Σ = I, Frobenius norm"


class _Dominance(Inputs):
    dim: int = 10
    examples: int = 40
    loops: tuple[int, ...] = (1, 2, 3)
    fractions: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0, 1.03, 1.1, 1.25, 1.5)
    matrices: int = 500
    floor: float = 2.0


CLAIMS = (
    Claim(
        id=f"{PAPER}/dominance-above-the-least-loss",
        title="Gradient dominance at losses of twice the least or more",
        statement=(
            "The loss ℓ of L loops has ‖∇_A ℓ‖² ≥ ℓ^{(2L−1)/L}/16 for Σ = I at all matrices tried whose loss is at least "
            "twice that of the best multiple of Σ⁻¹."
        ),
        source=(
            "gatmiry2024, Theorem 3.4 (arXiv v1, second-hand): the inequality, where the loss is not tiny; the number that "
            "says how small was not read, twice the least loss is ours"
        ),
        origin="ours",
        evidence="exact",
        settings=presets(_Dominance()),
        check=_above,
        criterion=(
            "Both sides are exact: in rational numbers at multiples of Σ⁻¹, and by the pairings of Gaussian inputs at random "
            "matrices, symmetric and not. Some condition on the loss is needed at every n: the least loss is positive, and the "
            "gradient vanishes there. That it holds at every matrix is not shown."
        ),
        history=(
            "Earlier versions also checked the inequality without any condition, which neither the paper nor a report of it "
            "says; that it then fails at the best multiple says nothing about the paper, and the check was dropped. Until "
            "losses of three loops were exact, random matrices were judged on drawn prompts, for 1, 2 and 4 loops and d = 5."
        ),
    ),
)
