"""The name that `identify` gives to a trained layer."""

from __future__ import annotations

from typing import Any

from mesascope.probes import identify
from mesascope.records import Verdict

from .._claim import Claim, Finding, Settings, all_of, both, within
from .._names import named
from .._still_falling import fall, unless_falling
from ._common import PAPER, best_step_size, data
from ._layers import PAPER_SIZES, SCALE, TRAINING, at_the_end, half_way, loss_above_the_step


def _named(settings: Settings) -> Finding:
    """`identify` on trained layers: name, number of steps and step size."""
    found, verdict = _asked(settings)
    sizes = [entry["step_size_over_the_best"] for entry in found]
    farthest = max(abs(size - 1) for size in sizes)
    return Finding(
        {
            "names": [" or ".join(entry["names"]) or "none" for entry in found],
            "step_sizes_over_the_best": sizes,
        },
        {"names": "gradient-descent, one step", "step_sizes_over_the_best": 1.0},
        settings["tolerance"],
        all_of(verdict, within(farthest, settings["tolerance"])),
        {"seeds": found},
    )


def _named_among_all(settings: Settings) -> Finding:
    """`identify` on trained layers, a preconditioner among the learners."""
    found, verdict = _asked(settings)
    # what a matrix fits is what training leaves beside the step: that, and not the loss, has to be at rest
    left = [loss_above_the_step(models, settings)[0] for models in (half_way(settings), at_the_end(settings))]
    falling = fall(*left)
    return Finding(
        {"names": [" or ".join(entry["names"]) or "none" for entry in found]},
        {"names": "gradient-descent, one step"},
        None,
        unless_falling(verdict, falling),
        {"seeds": found, "fall_of_the_loss_above_the_step_in_the_second_half": falling},
    )


def _asked(settings: Settings) -> tuple[list[dict[str, Any]], Verdict]:
    """What `identify` says about the layer of every seed, and whether that is one step of gradient descent for all."""
    process, task = data(settings)
    best, told, verdicts = best_step_size(settings), [], []
    for model in at_the_end(settings)[: settings["asked"]]:
        found = identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        entry = found.entry("gradient-descent")
        verdicts.append(named(found, "gradient-descent", 1))
        told.append(
            {
                "verdict": found.verdict,
                "names": list(found.candidates),
                "steps": int(entry.hyperparameters["steps"]),
                "step_size_over_the_best": float(entry.hyperparameters["step_size"]) / best,
                "distances": {one.learner: one.distance for one in found.ranking},
                "reasons": list(found.reasons),
            }
        )
    return told, all_of(*verdicts)


_ALGORITHMS = [
    "zero",
    "average",
    "gradient-descent",
    "gradient-descent++",
    "newton",
    "least-squares",
    "ridge",
]
_ASKED: dict[str, Any] = {**TRAINING, "asked": 2, "tasks": 1000}
_PAPER: dict[str, Any] = {**PAPER_SIZES, "asked": 5}

CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        statement=(
            "Asked which algorithm the trained layer runs, among learners without matrices to fit, `identify` names one "
            f"step of gradient descent for each of two seeds (paper: five), with the best step size to 2 % ({SCALE})."
        ),
        source="vonoswald2023, section 3: a trained layer is a step of gradient descent",
        settings=both({**_ASKED, "learners": _ALGORITHMS, "tolerance": 0.02}, **_PAPER),
        check=_named,
        tolerance_reason="the loss is flat where the step is best: 2 % of the step are 0.04 % of the loss",
    ),
    Claim(
        id=f"{PAPER}/named-beside-preconditioners",
        statement=(
            "`identify` names one step of gradient descent for the trained layer also where a step with any "
            "preconditioner, d² numbers fitted to the layer's answers, is among the learners, for each of two seeds (paper: "
            "five), once it is trained longer (d = N = 10, inputs uniform on [−½, ½], Adam; quick: 2000 steps of 2048 prompts; "
            "paper: 5000 steps)."
        ),
        source="vonoswald2023, section 3: a trained layer is a step of gradient descent, and no other algorithm",
        settings=both(
            {
                **_ASKED,
                "rate": 0.01,
                "batch": 2048,
                "recorded": [1000, 2000],
                "seeds": 2,
                "learners": [*_ALGORITHMS, "preconditioned-gradient-descent"],
            },
            **_PAPER,
        ),
        check=_named_among_all,
        tolerance_reason=(
            "no distance: `identify` calls a learner nearer only where 95 % intervals over tasks say so, and takes a "
            "preconditioner within 1 % of a multiple of the identity for no other learner; where the loss above the step's "
            "still fell by more than a tenth in the second half of the training, nothing is refuted"
        ),
    ),
)
