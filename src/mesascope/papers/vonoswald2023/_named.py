"""The name that `identify` gives to a trained layer."""

from __future__ import annotations

from typing import Any

from mesascope.probes import Identification, identify
from mesascope.records import Verdict

from .._claim import Claim, Finding, Settings, all_of, both, within
from .._names import answer_of, name_of, named
from .._still_falling import fall, unless_falling
from ._common import PAPER, best_step_size, data
from ._layers import PAPER_SIZES, SCALE, TRAINING, at_the_end, distances_from_the_step, half_way


def _named(settings: Settings) -> Finding:
    """`identify` on trained layers: name, number of steps and step size."""
    found, best = _asked(settings), best_step_size(settings)
    sizes = [float(one.entry(_NAME).hyperparameters["step_size"]) / best for one in found]
    farthest = max(abs(size - 1) for size in sizes)
    return Finding(
        {"names": [name_of(one) for one in found], "step_sizes_over_the_best": sizes},
        {"names": f"{_NAME}, one step", "step_sizes_over_the_best": 1.0},
        settings["tolerance"],
        all_of(_one_step(found), within(farthest, settings["tolerance"])),
        {"seeds": [answer_of(one, _NAME) for one in found]},
    )


def _named_among_all(settings: Settings) -> Finding:
    """`identify` on trained layers, a preconditioner among the learners."""
    found = _asked(settings)
    # what a matrix fits is what training leaves beside the step: that, and not the loss, has to be at rest
    falling = fall(
        *(distances_from_the_step(models, settings) for models in (half_way(settings), at_the_end(settings)))
    )
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": f"{_NAME}, one step"},
        None,
        unless_falling(_one_step(found), falling),
        {
            "seeds": [answer_of(one, _NAME) for one in found],
            "fall_of_the_distance_from_the_step_in_the_second_half": falling,
        },
    )


def _asked(settings: Settings) -> list[Identification]:
    """What `identify` says about the layer of every seed that is asked."""
    process, task = data(settings)
    return [
        identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        for model in at_the_end(settings)[: settings["asked"]]
    ]


def _one_step(found: list[Identification]) -> Verdict:
    """Whether that is one step of gradient descent for all of them."""
    return all_of(*(named(one, _NAME, 1) for one in found))


_NAME = "gradient-descent"
_ALGORITHMS = [
    "zero",
    "average",
    _NAME,
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
            "preconditioner within 1 % of a multiple of the identity for no other learner; where the mean squared distance "
            "from the answers of the step still fell by more than a tenth in the second half of the training, nothing is "
            "refuted"
        ),
    ),
)
