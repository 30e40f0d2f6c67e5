"""The name that `identify` gives to a trained layer."""

from __future__ import annotations

from mesascope.probes import identify

from .._claim import Claim, Finding, Settings, both, decide
from ._common import PAPER, best_step_size, data
from ._one_layer import PAPER_SIZES, SCALE, TRAINING, trained_layers


def _named(settings: Settings) -> Finding:
    """`identify` on trained layers."""
    process, task = data(settings)
    best = best_step_size(settings)
    names, steps, distances = [], [], []
    for model in trained_layers(settings, settings["steps"]):
        found = identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        names.append(found.candidates if found.verdict == "identified" else (found.verdict,))
        entry = found.entry("gradient-descent")
        steps.append([float(entry.hyperparameters["step_size"]) / best, int(entry.hyperparameters["steps"])])
        distances.append(entry.distance)
    right = all(name == ("gradient-descent",) for name in names) and all(count == 1 for _, count in steps)
    sizes = [size for size, _ in steps]
    near = max(abs(size - 1) for size in sizes) <= settings["tolerance"]
    return Finding(
        {"names": [" or ".join(name) for name in names], "step_sizes_over_the_best": sizes},
        {"names": "gradient-descent, one step", "step_sizes_over_the_best": 1.0},
        settings["tolerance"],
        decide(right and near),
        {"steps": [count for _, count in steps], "distances": distances, "meaning": "one entry per seed"},
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        statement=(
            "Asked which algorithm the trained layer runs, among learners without matrices to fit, `identify` names one "
            "step of gradient descent for every seed, with the best step size to 2 % "
            f"({SCALE.format(quick=1000, paper=5000)})."
        ),
        source="vonoswald2023, section 3: a trained layer is a step of gradient descent",
        settings=both(
            {
                **TRAINING,
                "seeds": 2,
                "tasks": 1000,
                "learners": [
                    "zero",
                    "average",
                    "gradient-descent",
                    "gradient-descent++",
                    "newton",
                    "least-squares",
                    "ridge",
                ],
                "tolerance": 0.02,
            },
            **{**PAPER_SIZES, "seeds": 5},
        ),
        check=_named,
        tolerance_reason="the loss is flat where the step is best: 2 % of the step are 0.04 % of the loss",
    ),
)
