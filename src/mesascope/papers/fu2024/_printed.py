"""What the paper prints of its table of best-matching steps, held against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._claim import Claim, Finding, Settings, all_of, both
from .._intervals import between, mean_interval
from ._newton import PAPER, similarities


def _printed(settings: Settings) -> Finding:
    """The iterations with errors most like those of the printed numbers of gradient steps, for several step sizes."""
    iterations, steps = np.arange(settings["most_iterations"] + 1), np.array(settings["steps"])
    found: dict[str, Any] = {}
    for size in settings["step_sizes"]:
        of_size = {**settings, "step_size": size}
        tables = [
            similarities(of_size, str(number), iterations, steps) for number in range(settings["batches"])
        ]
        found[f"{size:g}"] = np.array([[_peak(column) for column in table.T] for table in tables])
    more = {name: mean_interval(_slopes(matched)) for name, matched in found.items()}
    least, most = settings["per_layer"]
    return Finding(
        {name: mean for name, (mean, _) in more.items()},
        f"between {least} and {most} iterations for one of the printed numbers to the next",
        None,
        all_of(*(between(interval, least, most) for _, interval in more.values())),
        {
            "intervals_95": {name: interval for name, (_, interval) in more.items()},
            "iterations": {name: matched.mean(0).tolist() for name, matched in found.items()},
            "gradient_steps": settings["steps"],
            "meaning": "by step size, which was not read; slopes over the four numbers by least squares, over batches",
        },
    )


def _peak(similar: np.ndarray) -> float:
    """Where the parabola through the largest of them and its neighbours is highest."""
    top = int(np.clip(similar.argmax(), 1, len(similar) - 2))
    before, here, after = similar[top - 1 : top + 2]
    return top + 0.5 * (before - after) / (before - 2 * here + after)


def _slopes(matched: np.ndarray) -> np.ndarray:
    """Iterations for one number to the next, of every batch."""
    return np.asarray(np.polyfit(np.arange(matched.shape[1]), matched.T, 1)[0])


CLAIMS = (
    Claim(
        id=f"{PAPER}/printed-steps",
        statement=(
            "What the paper prints fits together: 50, 200, 650 and 1200 gradient steps, if they belong to layers in a "
            "row, err like numbers of Newton's iterations that grow by about 3 a layer (2.5 to 3.5; d = 20, N = 40, the "
            "paper's size, for step sizes from 0.01 to 0.04; quick: four batches of 60 prompts; paper: ten batches of "
            "500)."
        ),
        source="fu2024, section 4: about three iterations a layer, and 50, 200, 650, 1200 best-matching gradient steps",
        settings=both(
            {
                "dim": 20,
                "examples": 40,
                "steps": [50, 200, 650, 1200],
                "step_sizes": [0.01, 0.02, 0.04],
                "most_iterations": 18,
                "batches": 4,
                "prompts": 60,
                "per_layer": [2.5, 3.5],
                "seed": 0,
            },
            batches=10,
            prompts=500,
        ),
        check=_printed,
        tolerance_reason=(
            "no distance: the 95 % intervals over batches must lie in what rounds to 3; neither the layers nor the step "
            "size of the printed numbers are known, and the slope does not depend on the latter"
        ),
    ),
)
