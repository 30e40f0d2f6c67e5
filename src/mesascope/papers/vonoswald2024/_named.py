"""The name that `identify` gives to trained mesa layers."""

from __future__ import annotations

from mesascope.models import SequenceModel

from .._claim import Claim, Finding, presets
from .._names import Asking, answer_of, identified_as, identify_all, name_of
from .._still_falling import unless_falling
from ._common import PAPER, data
from ._models import PAPER_SIZES, Trained, fall_of_mesa_layers, mesa_layers


def _mesa(settings: _Asked) -> Finding:
    """Trained mesa layers."""
    return _named(mesa_layers(settings), "ridge", fall_of_mesa_layers(settings), settings)


def _named(models: list[SequenceModel], name: str, falling: float, settings: _Asked) -> Finding:
    found = identify_all(models[: settings.asked], *data(settings), settings)
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": name},
        None,
        unless_falling(identified_as(name, *found), falling),
        {"fall_of_the_loss_in_the_second_half": falling, "seeds": [answer_of(one, name) for one in found]},
    )


class _Asked(Trained, Asking):
    asked: int = 2
    tasks: int = 300
    learners: tuple[str, ...] = ("gradient-descent", "gradient-descent++", "least-squares", "ridge")


CLAIMS = (
    Claim(
        id=f"{PAPER}/mesa-layer-named",
        title="`identify` names ridge regression for a trained mesa layer",
        evidence="measured, reduced",
        origin="ours",
        statement="Asked which algorithm a trained mesa layer runs, `identify` names ridge regression.",
        source="vonoswald2024, equations (4) to (8), where weights are set so; asked of `identify`",
        settings=presets(_Asked(), **PAPER_SIZES),
        check=_mesa,
        criterion="""The name for both seeds. `identify` takes no learner farther than 1 % of the layer's answers for it; a loss
            that still fell by more than a tenth in the second half of the training is undecided.""",
        cost="about 5 h",
    ),
)
