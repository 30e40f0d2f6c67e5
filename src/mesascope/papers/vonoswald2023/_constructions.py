"""Layers of linear attention that are steps of gradient descent, and of GD++: exact identities."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.learners import GradientDescent, GradientDescentPlusPlus, predictions, prompt_examples
from mesascope.processes import LinearRegression
from mesascope.theory import vonoswald2023 as theory

from .._claim import Claim, Finding, Settings, presets
from .._identity import identity, relative_error
from .._prompts import construction_model
from ._common import PAPER


def _gradient_descent(settings: _Cases) -> Finding:
    """Layers beside the learner."""
    step = settings.step_size
    return _compared(
        settings,
        lambda dim, layers: theory.gradient_descent(dim, [step] * layers),
        lambda layers: GradientDescent(step, steps=layers),
    )


def _plus_plus(settings: _PlusPlus) -> Finding:
    """Layers beside the learner."""
    step, curvature = settings.step_size, settings.curvature
    return _compared(
        settings,
        lambda dim, layers: theory.gradient_descent_plus_plus(dim, [step] * layers, [curvature] * layers),
        lambda layers: GradientDescentPlusPlus(step, curvature, steps=layers),
    )


def _compared(settings: _Cases, construct: Any, learner: Any) -> Finding:
    """The largest differences of their predictions, in units of the largest prediction."""
    errors = {}
    for dim, examples, layers in settings.cases:
        key = named_key(settings.seed, "identity", str(dim), str(examples))
        x, y = LinearRegression(dim, noise=0.5).sample(key, examples, settings.prompts)
        wanted = np.asarray(predictions(learner(layers), *prompt_examples(x, y)))[:, -1, 0]
        answers = construction_model(construct(dim, layers))(x, y[:, :-1])
        errors[f"d = {dim}, N = {examples}, {layers} layers"] = relative_error(answers, wanted)
    return identity(errors, settings.tolerance)


class _Cases(Settings):
    cases: tuple[tuple[int, int, int], ...] = (
        (1, 1, 1),
        (3, 6, 2),
        (10, 10, 1),
        (10, 10, 5),
        (10, 25, 12),
        (20, 40, 3),
    )
    step_size: float = 0.2
    prompts: int = 64
    seed: int = 0
    tolerance: float = 1e-12


class _PlusPlus(_Cases):
    curvature: float = 0.1


CLAIMS = (
    Claim(
        id=f"{PAPER}/proposition-1",
        title="Layers of linear attention are steps of gradient descent",
        evidence="exact",
        origin="paper",
        statement="""L layers of linear attention with the weights of Proposition 1 answer every prompt as L steps of gradient
            descent on the in-context least-squares problem do.""",
        source="vonoswald2023, Proposition 1 (section 2; construction in A.1)",
        settings=presets(_Cases()),
        check=_gradient_descent,
        criterion="""An identity: the largest difference, relative to the largest answer, is within 10⁻¹², for the rounding of
            double precision.""",
    ),
    Claim(
        id=f"{PAPER}/gd-plus-plus",
        title="Layers that also change the inputs are steps of GD++",
        evidence="exact",
        origin="paper",
        statement="""L layers that also write into the inputs answer every prompt as L steps of GD++ do, where inputs are
            multiplied by I − γXXᵀ beside each gradient step.""",
        source="vonoswald2023, section 3 and A.10; their γ is not divided by N, ours is N times as large",
        settings=presets(_PlusPlus()),
        check=_plus_plus,
        criterion="""An identity: the largest difference, relative to the largest answer, is within 10⁻¹², for the rounding of
            double precision.""",
    ),
)
