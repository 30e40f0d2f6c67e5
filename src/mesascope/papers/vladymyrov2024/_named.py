"""The names that `identify` gives to layers trained under mixed noise: GD++ has one, diagonal heads have none."""

from __future__ import annotations

from typing import Any

from mesascope.probes import Identification
from mesascope.records import Decision

from .._claim import Claim, Finding, all_of, presets
from .._intervals import above, mean_interval
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of, unidentified
from .._still_falling import unless_falling
from ._exact import PAPER
from ._mixed_noise import FULL_SIZES, REST, Judging, data, judged, trained


def _gd_plus_plus(settings: _Asked) -> Finding:
    """Layers whose heads read no labels."""
    found = _asked(settings, "gd++")
    falling = judged(settings, "gd++").falling
    return _finding(found, _NAME, {"name": unless_falling(identified_as(_NAME, *found), falling)}, falling)


def _diagonal(settings: _Asked) -> Finding:
    """Layers with all four numbers, which must also be better than those."""
    found = _asked(settings, "diagonal")
    (losses, _, falling), (others, *_) = (judged(settings, heads) for heads in ("diagonal", "gd++"))
    margin, interval = mean_interval(others - losses)
    parts = {
        "no name": unidentified(*found),
        "closer than GD++": unless_falling(above(interval, 0.0), falling),
    }
    return _finding(
        found, "none", parts, falling, better_than_gd_plus_plus_by={"mean": margin, "interval_95": interval}
    )


def _asked(settings: _Asked, heads: str) -> list[Identification]:
    models = trained(settings, heads)[settings.steps][: settings.asked]
    return identify_all(models, *data(settings), settings)


def _finding(
    found: list[Identification], name: str, parts: dict[str, Decision], falling: float, **details: Any
) -> Finding:
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": name},
        None,
        all_of(*parts.values()),
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "nearest": [min(entry.distance for entry in one.ranking) for one in found],
            "seeds": [answer_of(one, _NAME) for one in found],
            **details,
        },
        parts=parts if len(parts) > 1 else {},
    )


_NAME = "gradient-descent++"


class _Asked(Judging, IdentifySettings):
    asked: int = 3
    tasks: int = 400


_REASON = """Asked are the first three of the five layers, in the full preset all five. `identify` calls a learner what the
    layers do if it lies within a hundredth of their squared answers, and takes another one for farther only where 95 %
    intervals over tasks say so."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/gd-plus-plus-named",
        title="Layers of GD++ trained under mixed noise are named GD++",
        statement="""Of nine learners `identify` names GD++ with one step size and one curvature for layers of GD++ trained
            under mixed noise, for every seed, and not ridge regression with the best penalty.""",
        source=f"{PAPER}, section 5.1 (GD++: q_y = 0); that it has a name is asked here",
        origin="ours",
        evidence="measured, reduced",
        settings=presets(_Asked(), **FULL_SIZES, asked=5),
        check=_gd_plus_plus,
        criterion=f"{_REASON} {REST}",
        history="Three seeds were trained before.",
        cost="about 12 h",
    ),
    Claim(
        id=f"{PAPER}/diagonal-heads-nameless",
        title="Trained diagonal heads run none of nine known algorithms",
        statement="""Layers of diagonal heads trained under mixed noise are none of nine learners with the same numbers for all
            prompts, for every seed, and come closer to the oracle than GD++ of the same depth.""",
        source=f"{PAPER}, sections 5.2 and 5.3 (heads that read labels adapt to the noise); asking for a name is ours",
        origin="ours",
        evidence="measured, another model",
        settings=presets(_Asked(), **FULL_SIZES, asked=5),
        check=_diagonal,
        criterion=f"""{_REASON} The layers are closer to the oracle where the 95 % interval over five seeds of the difference,
            on the same prompts, does not reach 0. {REST}""",
        history="Three seeds were trained before.",
        cost="about 25 h",
    ),
)
