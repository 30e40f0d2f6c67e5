"""The name that `identify` gives to layers that were trained on nonlinear targets."""

from __future__ import annotations

from mesascope.probes import identify

from .._claim import Claim, Finding, Settings, all_of, both
from .._names import answer_of, name_of, named
from .._still_falling import unless_falling
from ._layer import PAPER
from ._nonlinear_targets import PAPER_SIZES, SETTINGS, data, test_prompts, trained_layers


def _named(settings: Settings) -> Finding:
    """Whether layers that came near the lowest loss are called one step of gradient descent."""
    process, task = data(settings)
    layers = trained_layers(settings, test_prompts(settings))
    found = {
        f"{number}": identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        for number, model in zip(layers.numbers, layers.arrived, strict=True)
    }
    verdict = all_of(*(named(one, _NAME, steps=1) for one in found.values()))
    return Finding(
        {"names": {number: name_of(one) for number, one in found.items()}},
        {"names": f"{_NAME}, one step"},
        None,
        unless_falling(verdict, layers.falling),
        {
            "fall_of_the_loss_in_the_second_half": layers.falling,
            "seeds": {number: answer_of(one, _NAME) for number, one in found.items()},
        },
    )


_NAME = "gradient-descent"

CLAIMS = (
    Claim(
        id=f"{PAPER}/nonlinear-targets-named",
        statement=(
            "Asked which algorithm layers run that were trained on random two-layer ReLU networks, `identify` names one step "
            "of gradient descent on linear least squares for every one within 5 % of the lowest loss, among nine learners with "
            "ridge regression, Newton's method and a step with any preconditioner (quick: d = 3, n = 10, width 20, Adam, 1500 "
            "steps of 512 prompts, eight seeds, 400 tasks; paper: d = 5, n = 40, width 100, 5000 steps, twelve seeds, 2000 "
            "tasks)."
        ),
        source="mahankali2024, Theorem 3: whatever the targets, the best layer is a step on linear least squares",
        settings=both(
            {
                **SETTINGS,
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
            },
            **PAPER_SIZES,
            tasks=2000,
        ),
        check=_named,
        origin="ours",
        tolerance_reason=(
            "no distance: `identify` calls a learner what the layer does within a hundredth of its squared answers, and takes "
            "another one for farther only where 95 % intervals over tasks say so; where the loss still fell by more than a "
            "tenth in the second half of the training, nothing is refuted"
        ),
    ),
)
