"""Flows, descents and trained models that a claim may be judged by: those that came to their end."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx

from mesascope.dynamics import Descent, Flow, Outcome, Training

from ._claim import Settings, UnsettledError

Model = TypeVar("Model", bound=eqx.Module)
Run = TypeVar("Run", bound="Flow[Any] | Descent[Any] | Training[Any]")


def require_finished(run: Run) -> Run:
    """The run itself, if it came to its end.

    Raises:
        KeyboardInterrupt: it was interrupted (the run keeps what it has; a claim must not be judged by it).
        UnsettledError: it hit a limit or diverged, which says nothing about the claim.
    """
    if run.result is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    if run.result not in (Outcome.CONVERGED, Outcome.FINISHED):
        raise UnsettledError(f"a run ended with {run.result.value!r}: {run.result.message}")
    return run


class Seeds(Settings):
    """The seeds of a claim's models: `seeds` of them, from `seed` on."""

    seed: int = 0
    seeds: int = 5


def seeds_of(settings: Seeds) -> list[int]:
    """The seeds of a claim's models."""
    return list(range(settings.seed, settings.seed + settings.seeds))
