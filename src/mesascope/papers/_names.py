"""The names that `identify` gives: verdicts on them, and what a finding tells of them."""

from __future__ import annotations

from typing import Any

from mesascope.probes import Identification
from mesascope.records import Decision

from ._claim import decide


def named(found: Identification, learner: str, steps: int | None = None) -> Decision:
    """Whether one learner is what `identify` names, and no other.

    Met if it is identified, undecided if it is among those that an ambiguous answer leaves, else not met.

    Args:
        found: what `identify` says.
        learner: its id.
        steps: how many it takes, which then belongs to the name.
    """
    if found.verdict == "ambiguous" and learner in found.candidates:
        return "undecided"
    right = found.verdict == "identified" and found.candidates == (learner,)
    return decide(right and (steps is None or int(found.entry(learner).hyperparameters["steps"]) == steps))


def nameless(found: Identification) -> Decision:
    """Whether `identify` finds no learner that does what the model does.

    Met if none is within its tolerance, undecided if its answer is ambiguous, not met if it names one.

    Args:
        found: what `identify` says.
    """
    return "undecided" if found.verdict == "ambiguous" else decide(found.verdict == "none")


def name_of(found: Identification) -> str:
    """The learners that `identify` names or cannot tell apart, or "none"."""
    return " or ".join(found.candidates) or "none"


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
