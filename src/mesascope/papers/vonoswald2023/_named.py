"""The name that `identify` gives to a trained layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mesascope.probes import Identification

from .._claim import Claim, Finding, presets, within
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of
from .._still_falling import fall, unless_falling
from ._common import PAPER, best_step_size, data
from ._layers import PAPER_SIZES, TestedTraining, at_the_end, distances_from_the_step, half_way


def _named(settings: _Named) -> Finding:
    """`identify` on trained layers: name and step size without matrices to fit, and the name beside preconditioners."""
    learners = settings.learners
    plain = _asked(settings, [one for one in learners if one not in _MATRICES])
    every = _asked(settings, learners)
    best = best_step_size(settings)
    sizes = [float(one.entry(_NAME).hyperparameters["step_size"]) / best for one in plain]
    # a matrix fits what training leaves beside the step: this, and not the loss, must have stopped falling
    falling = fall(
        *(distances_from_the_step(models, settings) for models in (half_way(settings), at_the_end(settings)))
    )
    parts = {
        "named": identified_as(_NAME, *plain, steps=1),
        "with the best step size": within(max(abs(size - 1) for size in sizes), settings.tolerance),
        "named beside preconditioners": unless_falling(identified_as(_NAME, *every, steps=1), falling),
    }
    return Finding.of_parts(
        {
            "names": [name_of(one) for one in plain],
            "step_sizes_over_the_best": sizes,
            "names_beside_preconditioners": [name_of(one) for one in every],
        },
        {
            "names": f"{_NAME}, one step",
            "step_sizes_over_the_best": 1.0,
            "names_beside_preconditioners": f"{_NAME}, one step",
        },
        settings.tolerance,
        parts,
        {
            "seeds": [answer_of(one, _NAME) for one in plain],
            "seeds_beside_preconditioners": [answer_of(one, _NAME) for one in every],
            "fall_of_the_distance_from_the_step_in_the_second_half": falling,
        },
    )


def _asked(settings: _Named, learners: Sequence[str]) -> list[Identification]:
    """What `identify` says about the layer of every seed that is asked."""
    models = at_the_end(settings)[: settings.asked]
    return identify_all(models, *data(settings), replace(settings, learners=tuple(learners)))


_NAME = "gradient-descent"
_ALGORITHMS = ("zero", "average", _NAME, "gradient-descent++", "newton", "least-squares", "ridge")
_MATRICES = ("preconditioned-gradient-descent",)


class _Named(TestedTraining, IdentifySettings):
    asked: int = 2
    tasks: int = 1000
    learners: tuple[str, ...] = (*_ALGORITHMS, *_MATRICES)
    tolerance: float = 0.02


CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        title="`identify` names one step of gradient descent for a trained layer",
        evidence="measured, reduced",
        origin="ours",
        statement="""Asked which algorithm a trained layer of linear attention runs, `identify` names one step of gradient
            descent of the best size, also where steps with any preconditioner are among its learners.""",
        source="""vonoswald2023, section 3, asked of `identify`; the paper itself says that the underlying algorithm could be
            another""",
        settings=presets(
            _Named(rate=0.01, batch=2048, recorded=(1000, 2000), seeds=5),
            **{**PAPER_SIZES, "seeds": 5},
            asked=5,
        ),
        check=_named,
        criterion="""The name for every seed, and the step size to 2 %: where the step is best, 2 % of it are 0.04 % of the
            loss. `identify` calls a learner nearer only where 95 % intervals over tasks say so, and takes a preconditioner
            within 1 % of a multiple of the identity for no other learner. Where the squared distance from the step's answers
            still fell by more than a tenth in the second half of the training, a preconditioner in its place decides
            nothing.""",
        history="""After 1000 steps of 512 prompts a preconditioner, with d² numbers fitted to the answers, was preferred while
            the loss still fell; training was then made eight times as long. Asked with 500 instead of 1000 tasks, one of the
            two seeds still got the preconditioner, and the claim was undecided.""",
        cost="about 20 min",
    ),
)
