"""The iterations and the gradient steps that the paper prints for the same layers, held against each other."""

from __future__ import annotations

import numpy as np

from .._claim import Claim, Finding, presets
from .._intervals import between, mean_interval
from ._newton import CONVENTIONS, PAPER
from ._similar import Compared, similarities


def _printed(settings: _Printed) -> Finding:
    """The iterations with errors most like those of the printed numbers of gradient steps."""
    iterations, steps = np.arange(settings.most_iterations + 1), np.array(settings.steps)
    batches = [similarities(settings, str(number), iterations, steps) for number in range(settings.batches)]
    found = np.array([[_peak(column) for column in table.T] for table in batches])
    means = [mean_interval(column) for column in found.T]
    slope, interval = mean_interval(_slopes(found))
    near, (least, most) = settings.near, settings.per_layer
    parts = {
        f"layer {layer}": between(ends, count - near, count + near)
        for layer, count, (_, ends) in zip(settings.of_layers, settings.counts, means, strict=True)
    }
    parts["about three a layer"] = between(interval, least, most)
    return Finding.of_parts(
        {"iterations": [mean for mean, _ in means], "iterations_per_layer": slope},
        {"iterations": settings.counts, "iterations_per_layer": f"between {least} and {most}"},
        near,
        parts,
        {
            "intervals_95": {"iterations": [ends for _, ends in means], "iterations_per_layer": interval},
            "gradient_steps": settings.steps,
            "layers": settings.of_layers,
            "meaning": "iterations of the most similar errors, by the gradient steps of the paper's layers",
        },
    )


def _peak(similar: np.ndarray) -> float:
    """Where the parabola through the largest of them and its neighbours is highest."""
    top = int(np.clip(similar.argmax(), 1, len(similar) - 2))
    before, here, after = similar[top - 1 : top + 2]
    return float(top + 0.5 * (before - after) / (before - 2 * here + after))


def _slopes(matched: np.ndarray) -> np.ndarray:
    """Iterations for one number to the next, of every batch."""
    return np.asarray(np.polyfit(np.arange(matched.shape[1]), matched.T, 1)[0])


class _Printed(Compared):
    of_layers: tuple[int, ...] = (6, 7, 8, 9)
    steps: tuple[int, ...] = (50, 200, 650, 1250)
    counts: tuple[int, ...] = (10, 14, 17, 20)
    most_iterations: int = 24
    near: float = 1.5
    per_layer: tuple[float, float] = (2.5, 3.5)


CLAIMS = (
    Claim(
        id=f"{PAPER}/printed-steps",
        title="Printed iterations and gradient steps of layers fit together",
        evidence="measured, reduced",
        origin="paper",
        statement=(
            "The gradient steps that the paper finds most similar to layers 6 to 9 are also most similar to the Newton "
            "iterations that it prints for these layers, about three more per layer."
        ),
        source=(
            "fu2024, legend of Figure 7b (10, 14, 17, 20 iterations) and Figure 8 (50, 200, 400-1000, 900-1250 steps); "
            f"{CONVENTIONS}"
        ),
        settings=presets(_Printed(), batches=10, prompts=320),
        check=_printed,
        criterion=(
            "The 95 % interval over batches of the most similar number of iterations, between whole numbers by a parabola, "
            "lies within 1.5 of the printed one: half of what a layer adds, so that no layer is taken for the next. It "
            "cannot be exact: the paper tries gradient steps in fifties, and whole iterations. For the ties of layers 8 and "
            "9 we take 650 and 1250 steps. The slope over the four must round to three."
        ),
        history=(
            "Steps of 0.01, 0.02 and 0.04 on the mean loss were tried before the authors' step was known to act on the sum, "
            "with 50, 200, 650 and 1200 steps, from notes: slopes 3.09 to 3.16, but at 0.01 only 1.3 to 10.5 iterations. The "
            "seeds are those of then."
        ),
    ),
)
