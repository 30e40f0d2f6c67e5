"""The names that `identify` gives to loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.models import PromptModel
from mesascope.probes import identify
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, Settings, all_of, both
from .._names import answer_of, name_of, named
from ._common import PAPER, drawn_moments, looped_model, minimizer


def _best(settings: Settings) -> Finding:
    """`identify` on layers that are fitted for several loops."""
    dim, examples = settings["dim"], settings["examples"]
    moments = drawn_moments(settings, examples, settings["prompts"], "named")
    fitted = {loops: minimizer(moments, loops, settings["seed"]) for loops in settings["loops"]}
    return _named(settings, {loops: looped_model(m, v, loops) for loops, (m, v) in fitted.items()}, dim)


def _multiples(settings: Settings) -> Finding:
    """`identify` on loops of the best multiple of I."""
    dim, examples = settings["dim"], settings["examples"]
    steps = {loops: theory.best_multiple(dim, examples, loops) for loops in settings["loops"]}
    return _named(
        settings, {loops: looped_model(a * np.eye(dim), None, loops) for loops, a in steps.items()}, dim
    )


def _named(settings: Settings, models: dict[int, PromptModel], dim: int) -> Finding:
    """Whether every looped layer is called gradient descent with as many steps, on inputs with covariance I."""
    process, task = LinearRegression(dim), FewShot(settings["examples"])
    found = {
        loops: identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        for loops, model in models.items()
    }
    steps = {loops: int(one.entry(_NAME).hyperparameters["steps"]) for loops, one in found.items()}
    return Finding(
        {f"{loops}": f"{name_of(one)}; of descent {steps[loops]} steps" for loops, one in found.items()},
        {f"{loops}": f"{_NAME}; of descent {loops} steps" for loops in found},
        None,
        all_of(*(named(one, _NAME, loops) for loops, one in found.items())),
        {
            "loops": {f"{loops}": answer_of(one, _NAME) for loops, one in found.items()},
            "best_multiples": {
                f"{loops}": theory.best_multiple(dim, settings["examples"], loops) for loops in found
            },
        },
    )


_NAME = "gradient-descent"
_ASKED: dict[str, Any] = {
    "dim": 5,
    "examples": 40,
    "loops": [2, 3],
    "tasks": 400,
    "learners": [
        "zero",
        "average",
        _NAME,
        "momentum",
        "preconditioned-gradient-descent",
        "gradient-descent++",
        "newton",
        "least-squares",
        "ridge",
    ],
    "seed": 0,
}
_TOLERANCE = (
    "no distance: `identify` calls a learner what the layer does within a hundredth of its squared answers, and another one "
    "farther only where 95 % intervals over tasks say so; an ambiguous answer with the right learner in it decides nothing"
)

CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        statement=(
            "Asked which algorithm L loops of a layer with A = aΣ⁻¹ run, Σ = I, `identify` names gradient descent with L "
            "steps, among nine learners with momentum, Newton's and a step with any preconditioner (a that of the least loss; "
            "d = 5, n = 40; quick: L = 3, 400 tasks; paper: L = 2, 3 and 4, 5000 tasks)."
        ),
        source="gatmiry2024, section 2: loops are steps of preconditioned gradient descent; Σ = I needs no preconditioner",
        settings=both({**_ASKED, "loops": [3]}, loops=[2, 3, 4], tasks=5000),
        check=_multiples,
        origin="ours",
        tolerance_reason=_TOLERANCE,
    ),
    Claim(
        id=f"{PAPER}/best-layer-named",
        statement=(
            "`identify` gives the same name to the layer of the least loss on drawn prompts, whose A is free (Σ = I, L = 2 and "
            "3, d = 5, n = 40; quick: 2000 prompts to fit, 400 tasks; paper: 20000 and 5000)."
        ),
        source="gatmiry2024, the minimiser runs L steps of preconditioned gradient descent; Σ = I needs no preconditioner",
        settings=both({**_ASKED, "prompts": 2000}, prompts=20_000, tasks=5000),
        check=_best,
        origin="ours",
        tolerance_reason=_TOLERANCE,
    ),
)
