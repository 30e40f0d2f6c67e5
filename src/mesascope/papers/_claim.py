"""What a claim is: one checkable statement of one paper, with the function that checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Literal

from mesascope.records import Figure, Origin, Verdict

Preset = Literal["quick", "paper"]
"""The size at which a claim is checked: minutes on a laptop, or the paper's own."""
PRESETS: tuple[Preset, ...] = ("quick", "paper")
"""All presets."""
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """What checking a claim gave.

    Attributes:
        measured: the number the verdict rests on, or all of them by name.
        expected: what the claim says they are.
        tolerance: largest deviation that still verifies the claim; None where the verdict is not a distance.
        verdict: verified, refuted or inconclusive.
        details: every case, error and interval behind it.
        figures: figures by name.
        data: labelled arrays by name, name → (dimensions, values).
    """

    measured: Any
    expected: Any
    tolerance: float | None
    verdict: Verdict
    details: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, tuple[tuple[str, ...], Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """One statement, its source, and how it is checked.

    Attributes:
        id: `paper/claim`.
        statement: one sentence that can be true or false, with the scale at which it is checked.
        source: bib key and number of the theorem, equation, figure or review point.
        settings: what `check` is given, for every preset; with the code it determines the result.
        check: from settings to finding.
        tolerance_reason: why the tolerance (or threshold) is what it is.
        origin: who says it: `paper` (the paper or its authors' program), `review` (asked for in the reviews of the paper, or
            told there), `ours` (found or derived here; the paper does not say it).
    """

    id: str
    statement: str
    source: str
    settings: Mapping[Preset, Settings]
    check: Callable[[Settings], Finding]
    tolerance_reason: str
    origin: Origin = "paper"

    def seed(self, preset: Preset) -> int | None:
        """The seed under a preset, None where nothing is sampled."""
        return self.settings[preset].get("seed")


def both(settings: Settings, **paper: Any) -> dict[Preset, Settings]:
    """Settings of the quick preset, and of the paper preset where some differ."""
    return {"quick": settings, "paper": {**settings, **paper}}


def decide(holds: bool) -> Verdict:
    """Verified if it holds, else refuted."""
    return "verified" if holds else "refuted"


def all_of(*verdicts: Verdict) -> Verdict:
    """The verdict on a statement of several parts: refuted with any of them, else inconclusive with any, else verified."""
    for verdict in ("refuted", "inconclusive"):
        if verdict in verdicts:
            return verdict
    return "verified"


def within(error: float, tolerance: float) -> Verdict:
    """Verified when the error is within the tolerance, else refuted.

    An error that is not a number refutes, too; by a tolerance that is not one nothing is judged: inconclusive.
    """
    return "inconclusive" if isnan(tolerance) else decide(error <= tolerance)


class UnsettledError(RuntimeError):
    """A computation that a claim rests on did not finish: the claim is neither verified nor refuted."""
