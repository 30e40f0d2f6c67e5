"""The names that `identify` gives to loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mesascope.models import PromptModel
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, all_of, presets
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of
from ._common import PAPER, Inputs, looped_model, minimizer


def _best(settings: _Best) -> Finding:
    """`identify` on the best layers for several loops: the first decides."""
    dim, sizes = settings.dim, (settings.starts, settings.seed)
    found = {loops: minimizer(dim, settings.examples, loops, *sizes) for loops in settings.loops}
    matrices = {loops: best.point.reshape(dim, dim) for loops, best in found.items()}
    return _asked(
        settings,
        {loops: looped_model(m, None, loops) for loops, m in matrices.items()},
        settings.loops[:1],
        searches_that_reach_the_least_loss={f"{loops}": best.reached for loops, best in found.items()},
        antisymmetric_parts={
            f"{loops}": float(np.linalg.norm(m - m.T, 2)) / 2 for loops, m in matrices.items()
        },
    )


def _multiples(settings: _Asked) -> Finding:
    """`identify` on loops of the best multiple of I."""
    dim, examples = settings.dim, settings.examples
    steps = {loops: theory.best_multiple(dim, examples, loops) for loops in settings.loops}
    models = {loops: looped_model(a * np.eye(dim), None, loops) for loops, a in steps.items()}
    return _asked(settings, models, settings.loops)


def _asked(
    settings: _Asked, models: dict[int, PromptModel], judged: Sequence[int], **details: Any
) -> Finding:
    """The names of looped layers on inputs with covariance I; those of some numbers of loops decide."""
    process, task = LinearRegression(settings.dim), FewShot(settings.examples)
    found = dict(zip(models, identify_all(models.values(), process, task, settings), strict=True))
    steps = {loops: int(one.entry(_NAME).hyperparameters["steps"]) for loops, one in found.items()}
    return Finding(
        {f"{n}": f"{name_of(one)}; of descent {steps[n]} steps" for n, one in found.items()},
        {f"{loops}": f"{_NAME}; of descent {loops} steps" for loops in judged},
        None,
        all_of(*(identified_as(_NAME, found[loops], steps=loops) for loops in judged)),
        {
            "loops": {f"{loops}": answer_of(one, _NAME) for loops, one in found.items()},
            "best_multiples": {
                f"{loops}": theory.best_multiple(settings.dim, settings.examples, loops) for loops in found
            },
            **details,
        },
    )


_NAME = "gradient-descent"


class _Asked(Inputs, IdentifySettings):
    examples: int = 40
    loops: tuple[int, ...] = (2, 3)
    tasks: int = 400


_IDENTIFY = (
    "`identify` gives a layer the name of a learner within a hundredth of its squared answers if 95 % intervals over tasks "
    "put every other learner more than twice as far."
)


class _Best(_Asked):
    starts: int = 16


CLAIMS = (
    Claim(
        id=f"{PAPER}/named",
        title="Loops of the best multiple are named gradient descent",
        statement=(
            "For Σ = I, `identify` calls L loops of the best multiple of the identity gradient descent with L steps, among "
            "nine learners."
        ),
        source="gatmiry2024, Proposition 3.1 (arXiv v1, second-hand); Σ = I needs no preconditioner; that it is named is ours",
        origin="ours",
        evidence="measured, reduced",
        settings=presets(_Asked(loops=(3,)), loops=(2, 3, 4), tasks=5000),
        check=_multiples,
        criterion=(
            f"{_IDENTIFY} The number of steps must be right, too; an ambiguous answer with the right one in it decides "
            "nothing."
        ),
        cost="about 10 min",
    ),
    Claim(
        id=f"{PAPER}/best-layer-named",
        title="The best layer for two loops is named two gradient steps",
        statement=(
            "For Σ = I, `identify` calls the best layer for two loops two steps of gradient descent, among nine learners."
        ),
        source=(
            "found here; gatmiry2024, Proposition 3.1 and Theorem 3.2 (arXiv v1, second-hand): the minimizer runs L steps of "
            "preconditioned gradient descent"
        ),
        origin="ours",
        evidence="measured, reduced",
        settings=presets(_Best(), tasks=5000),
        check=_best,
        criterion=(
            f"{_IDENTIFY} "
            "An ambiguous answer decides nothing. What it says of three loops is told in the details. Layers are the best "
            "of 16 random starts on the exact loss; three have to reach the least loss to a millionth."
        ),
        history=(
            "The first version asked whether both layers are called gradient descent; the answer for three loops is ambiguous. "
            "The second counted that as no name, which says more than it shows. Layers used to be fitted on drawn prompts."
        ),
        cost="about 1 h",
    ),
)
