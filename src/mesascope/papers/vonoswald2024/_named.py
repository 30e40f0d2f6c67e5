"""The names that `identify` gives to trained layers."""

from __future__ import annotations

from typing import Any

from mesascope.models import SequenceModel
from mesascope.probes import identify

from .._claim import Claim, Finding, Settings, all_of, both
from .._names import answer_of, name_of, named
from .._still_falling import unless_falling
from ._common import PAPER, data
from ._models import (
    PAPER_SIZES,
    SCALE,
    TRAINING,
    fall_of_linear_layers,
    fall_of_mesa_layers,
    linear_layers,
    mesa_layers,
)


def _mesa(settings: Settings) -> Finding:
    """Trained mesa layers."""
    return _named(mesa_layers(settings), "ridge", fall_of_mesa_layers(settings), settings)


def _linear(settings: Settings) -> Finding:
    """One trained layer of linear attention."""
    falling = fall_of_linear_layers(settings, 1)
    return _named(linear_layers(settings, 1), "gradient-descent", falling, settings)


def _named(models: list[SequenceModel], name: str, falling: float, settings: Settings) -> Finding:
    process, task = data(settings)
    found = [
        identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        for model in models[: settings["asked"]]
    ]
    verdict = all_of(*(named(one, name) for one in found))
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": name},
        None,
        unless_falling(verdict, falling),
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "seeds": [answer_of(one, name) for one in found],
        },
    )


_ASKED: dict[str, Any] = {
    **TRAINING,
    "asked": 2,
    "tasks": 300,
    "learners": ["gradient-descent", "gradient-descent++", "least-squares", "ridge"],
}

CLAIMS = (
    Claim(
        id=f"{PAPER}/mesa-layer-named",
        statement=(
            "Asked which algorithm a trained mesa layer runs, `identify` names ridge regression for each of two seeds "
            f"({SCALE})."
        ),
        source="vonoswald2024, section on the mesa layer (one layer solves the in-context problem)",
        settings=both(_ASKED, **PAPER_SIZES),
        check=_mesa,
        tolerance_reason="no distance: `identify` takes no learner farther than 1 % of the layer's answers for it",
    ),
    Claim(
        id=f"{PAPER}/one-layer-named",
        statement=(
            "Asked which algorithm one trained layer of linear attention runs, `identify` names gradient descent for each "
            f"of two seeds ({SCALE})."
        ),
        source="vonoswald2024, section on one linear layer (a step of gradient descent)",
        settings=both(_ASKED, **PAPER_SIZES),
        check=_linear,
        tolerance_reason="no distance: `identify` takes no learner farther than 1 % of the layer's answers for it",
    ),
)
