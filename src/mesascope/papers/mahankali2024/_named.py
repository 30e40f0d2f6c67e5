"""The name that `identify` gives to layers that were trained on nonlinear targets, and the size of their step."""

from __future__ import annotations

from mesascope.theory import mahankali2024 as theory

from .._claim import Claim, Finding, presets
from .._intervals import between, mean_interval
from .._names import Asking, answer_of, identified_as, identify_all, name_of
from .._still_falling import unless_falling
from ._layer import PAPER
from ._nonlinear_targets import FULL_SIZES, REST, Judged, data, relative_steps, test_prompts, trained_layers


def _named(settings: _Named) -> Finding:
    """Whether layers that came near the lowest loss are called one step of gradient descent, and of which size."""
    process, task = data(settings)
    layers = trained_layers(settings, test_prompts(settings))
    answers = identify_all(layers.arrived, process, task, settings)
    found = dict(zip(map(str, layers.numbers), answers, strict=True))
    steps, near = relative_steps(settings, layers), settings.within
    step, interval = mean_interval(steps)
    sizes = settings.dim, settings.examples, settings.noise**2
    linear = float(theory.step_size(*sizes) / theory.relu_step_size(*sizes))
    parts = {
        "name": unless_falling(identified_as(_NAME, *answers, steps=1), layers.falling),
        "size of the step": unless_falling(between(interval, 1 - near, 1 + near), layers.falling),
    }
    return Finding.of_parts(
        {
            "names": {number: name_of(one) for number, one in found.items()},
            "step_relative_to_closed_form": step,
        },
        {"names": f"{_NAME}, one step", "step_relative_to_closed_form": 1.0},
        near,
        parts,
        {
            "fall_of_the_loss_in_the_second_half": layers.falling,
            "step_interval_95": interval,
            "steps_relative_to_closed_form": steps,
            "step_for_linear_targets_relative_to_it": linear,
            "seeds": {number: answer_of(one, _NAME) for number, one in found.items()},
        },
    )


_NAME = "gradient-descent"


class _Named(Judged, Asking):
    within: float = 0.05
    tasks: int = 400


CLAIMS = (
    Claim(
        id=f"{PAPER}/nonlinear-targets-named",
        title="Layers for ReLU targets are named one gradient step",
        statement=(
            "Of nine learners `identify` names one step of gradient descent for layers trained on random ReLU networks, and "
            "the step is 1/(n + 2d + 3 + 2σ²), shorter than for linear targets."
        ),
        source=(
            f"{PAPER}, abstract (Theorem 3, second-hand): for a family of nonlinear targets the best layer is a step on linear "
            "least squares; its size and asking for a name are ours"
        ),
        origin="ours",
        evidence="measured, reduced",
        settings=presets(_Named(), **FULL_SIZES, tasks=2000),
        check=_named,
        criterion=(
            "`identify` calls a learner what the layer does if it lies within a hundredth of its squared answers, and takes "
            "another one for farther only where 95 % intervals over tasks say so. The 95 % interval over seeds of the step, at "
            "least five, lies within 5 % of the closed form; the step for linear targets is farther off than that. "
            + REST
        ),
        history="The size of the step was a part of nonlinear-targets before.",
        cost="about 10 min",
    ),
)
