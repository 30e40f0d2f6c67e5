"""The name that `identify` gives to trained layers of linear attention: Newton's method, or gradient descent?"""

from __future__ import annotations

from mesascope.probes import identify
from mesascope.processes import FewShot

from .._claim import Claim, Finding, Settings, all_of, both
from .._names import answer_of, name_of, named
from ._depth import PAPER_SIZES, SETTINGS, regression, trained
from ._newton import PAPER


def _named(settings: Settings) -> Finding:
    """Networks of two layers, one for every seed."""
    process, task = regression(settings), FewShot(settings["examples"])
    found = [
        identify(models[settings["asked"] - 1], process, task, tasks=settings["tasks"], learners=_LEARNERS)
        for models in trained(settings)
    ]
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": "newton"},
        None,
        all_of(*(named(one, "newton") for one in found)),
        {
            "seeds": [
                {
                    **answer_of(one, "newton"),
                    "hyperparameters": {
                        name: one.entry(name).hyperparameters for name in ("newton", "gradient-descent")
                    },
                }
                for one in found
            ]
        },
    )


_LEARNERS = ("zero", "gradient-descent", "gradient-descent++", "newton", "least-squares", "ridge")

CLAIMS = (
    Claim(
        id=f"{PAPER}/layers-named",
        statement=(
            "Asked which algorithm two trained layers of linear attention run, `identify` names Newton's method for every "
            "seed, not gradient descent, GD++, least squares or ridge regression (noiseless prompts; GD++ layers, BFGS; "
            "deeper ones nearly solve the prompts, and all that solve them answer alike; quick: d = 8, N = 16, 1000 "
            "prompts, three seeds, 400 tasks; paper: d = 20, N = 40, 20 000 prompts, five seeds, 2000 tasks)."
        ),
        source=(
            "fu2024, section 4: layers are like Newton's iterations and not like steps of gradient descent (said there of the "
            "layers of one softmax transformer)"
        ),
        origin="ours",
        settings=both({**SETTINGS, "asked": 2, "tasks": 400}, **PAPER_SIZES, tasks=2000),
        check=_named,
        tolerance_reason=(
            "no distance: `identify` calls a learner what the layers do within a hundredth of their squared answers, and takes "
            "another one for farther only where 95 % intervals over tasks say so"
        ),
    ),
)
