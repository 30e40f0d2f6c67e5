"""The names that `identify` gives to layers trained under mixed noise: GD++ has one, diagonal heads have none."""

from __future__ import annotations

from typing import Any

from mesascope.probes import Identification, identify
from mesascope.records import Verdict

from .._claim import Claim, Finding, Settings, all_of, both
from .._intervals import above, mean_interval
from .._names import answer_of, name_of, named, nameless
from .._still_falling import unless_falling
from ._exact import PAPER
from ._mixed_noise import PAPER_SIZES, SCALE, SETTINGS, data, judged, trained


def _gd_plus_plus(settings: Settings) -> Finding:
    """Layers whose heads read no labels."""
    found = _asked(settings, "gd++")
    falling = judged({**settings, "heads": "gd++"}).falling
    names = all_of(*(named(one, _NAME) for one in found))
    return _finding(found, _NAME, unless_falling(names, falling), falling)


def _diagonal(settings: Settings) -> Finding:
    """Layers with all four numbers, which must also be better than those."""
    found = _asked(settings, "diagonal")
    (losses, falling), (others, _) = (judged({**settings, "heads": heads}) for heads in ("diagonal", "gd++"))
    margin, interval = mean_interval(others - losses)
    verdict = all_of(*(nameless(one) for one in found), unless_falling(above(interval, 0.0), falling))
    return _finding(
        found, "none", verdict, falling, better_than_gd_plus_plus_by={"mean": margin, "interval_95": interval}
    )


def _asked(settings: Settings, heads: str) -> list[Identification]:
    process, task = data(settings)
    models = trained({**settings, "heads": heads})[settings["steps"]]
    return [
        identify(model, process, task, tasks=settings["tasks"], learners=settings["learners"])
        for model in models
    ]


def _finding(
    found: list[Identification], name: str, verdict: Verdict, falling: float, **details: Any
) -> Finding:
    return Finding(
        {"names": [name_of(one) for one in found]},
        {"names": name},
        None,
        verdict,
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "nearest": [min(entry.distance for entry in one.ranking) for one in found],
            "seeds": [answer_of(one, _NAME) for one in found],
            **details,
        },
    )


_NAME = "gradient-descent++"
_ASKED: dict[str, Any] = {
    **SETTINGS,
    "tasks": 400,
    "learners": [
        "zero",
        "average",
        "gradient-descent",
        "momentum",
        "preconditioned-gradient-descent",
        _NAME,
        "newton",
        "least-squares",
        "ridge",
    ],
}
_REASON = (
    "no distance: `identify` calls a learner what the layers do within a hundredth of their squared answers, and takes another "
    "one for farther only where 95 % intervals over tasks say so; where the loss above the oracle's still fell by more than a "
    "tenth in the second half of the training, {} is not refuted"
)

CLAIMS = (
    Claim(
        id=f"{PAPER}/gd-plus-plus-named",
        statement=(
            "Asked which algorithm layers of GD++ run that were trained under mixed noise (σ uniform up to 5), `identify` "
            "names GD++ with one step size and one curvature, for every seed, and not ridge regression with the best penalty "
            f"or any other of nine learners ({SCALE})."
        ),
        source="vladymyrov2024, section 6: GD++ as the restriction of diagonal heads; that it is one algorithm is asked here",
        settings=both(_ASKED, **PAPER_SIZES),
        check=_gd_plus_plus,
        tolerance_reason=_REASON.format("the name"),
        origin="ours",
    ),
    Claim(
        id=f"{PAPER}/diagonal-heads-nameless",
        statement=(
            "Under such noise (σ uniform up to 5) none of nine learners, whose numbers are the same for all prompts, is what "
            "trained layers with diagonal heads do, neither GD++ nor ridge regression: `identify` finds all of them farther "
            "than 1 % for every seed, and the layers are closer to ridge regression that knows σ than GD++ of the same depth "
            f"({SCALE})."
        ),
        source="vladymyrov2024, section 6: diagonal heads adapt to the noise of the prompt; asking for a name is ours",
        settings=both(_ASKED, **PAPER_SIZES),
        check=_diagonal,
        tolerance_reason=_REASON.format("that they are closer"),
        origin="ours",
    ),
)
