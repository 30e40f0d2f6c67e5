"""The names that `identify` gives: verdicts on them, and what a finding tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mesascope.probes import Identification, identify
from mesascope.records import Decision

from ._claim import Settings, all_of, verdict_if


class IdentifySettings(Settings):
    """How many tasks `identify` draws, and among which learners it chooses."""

    tasks: int
    learners: tuple[str, ...] = (
        *("zero", "average", "gradient-descent", "momentum", "preconditioned-gradient-descent"),
        *("gradient-descent++", "newton", "least-squares", "ridge"),
    )


def identify_all(
    models: Iterable[Any], process: Any, task: Any, settings: IdentifySettings
) -> list[Identification]:
    """What `identify` says of every model."""
    return [
        identify(model, process, task, tasks=settings.tasks, learners=settings.learners) for model in models
    ]


def identified_as(learner: str, *found: Identification, steps: int | None = None) -> Decision:
    """Whether one learner is what `identify` names for every model, and no other.

    Met if it is identified, undecided if it is among those that an ambiguous answer leaves, else not met.

    Args:
        learner: its id.
        *found: what `identify` says of the models.
        steps: how many it takes, which then belongs to the name.
    """

    def decision(one: Identification) -> Decision:
        if one.verdict == "ambiguous" and learner in one.candidates:
            return "undecided"
        right = one.verdict == "identified" and one.candidates == (learner,)
        return verdict_if(
            right and (steps is None or int(one.entry(learner).hyperparameters["steps"]) == steps)
        )

    return all_of(*map(decision, found))


def unidentified(*found: Identification) -> Decision:
    """Whether `identify` finds no learner that does what a model does, for every model.

    Met if none is within its tolerance, undecided if its answer is ambiguous, not met if it names one.

    Args:
        *found: what `identify` says of the models.
    """
    return all_of(
        *("undecided" if one.verdict == "ambiguous" else verdict_if(one.verdict == "none") for one in found)
    )


def name_of(found: Identification) -> str:
    """The answer of `identify` in words.

    "ridge" where it is identified, "ridge (ambiguous)" where it is not certain that ridge is within the tolerance, "ridge or
    newton" where these two cannot be told apart, and "none".
    """
    unsure = found.verdict != "identified" and len(found.candidates) == 1
    return (" or ".join(found.candidates) or "none") + (f" ({found.verdict})" if unsure else "")


def answer_of(found: Identification, learner: str) -> dict[str, Any]:
    """What `identify` says of one model, for the details of a finding.

    Args:
        found: what `identify` says.
        learner: whose fitted hyperparameters belong to it.
    """
    return {
        "verdict": found.verdict,
        "distances": {entry.learner: entry.distance for entry in found.ranking},
        "hyperparameters": found.entry(learner).hyperparameters,
        "reasons": list(found.reasons),
    }
