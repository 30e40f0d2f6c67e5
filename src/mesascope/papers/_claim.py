"""What a claim is: one checkable statement of one paper, with the function that checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isnan
from typing import Any, Generic, Literal, Self, TypeVar, dataclass_transform

from mesascope.records import Decision, Evidence, Figure, Origin, Outcome, html_table, outcome_of

Preset = Literal["small", "full"]
"""The size at which a claim is checked: minutes on a laptop, or the paper's own as far as a claim's setting says so."""
PRESETS: tuple[Preset, ...] = ("small", "full")
"""All presets."""
Departure = Literal["same", "smaller", "other"]
"""How far a setting is from the paper's.

- `same`: equal but for rounding, or in how the same functions or the same mean are written;
- `smaller`: the paper's own with smaller sizes, or some of the cases that it covers;
- `other`: anything else.
"""


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True)
class Settings:
    """What a claim is checked with: sizes, data, seeds and thresholds, each a typed field of a subclass.

    Subclasses are frozen dataclasses without a decorator. A field holds what a record can: numbers, strings, tuples, mappings.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def of(cls, settings: Settings, **others: Any) -> Self:
        """The fields of this class, from other settings that have them, or from `others`.

        Raises:
            AttributeError: neither has one of the fields.
            TypeError: `others` has more than the fields.
        """
        given = {one.name: getattr(settings, one.name) for one in fields(cls) if one.name not in others}
        return cls(**given, **others)

    def as_table(self) -> dict[str, Any]:
        """Name → value of every field."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Finding:
    """What checking a claim gave.

    Attributes:
        measured: the number the decision rests on, or all of them by name.
        expected: what the claim says they are.
        tolerance: largest deviation that still meets the criterion; None where the decision is not a distance.
        decision: whether the criterion is met.
        details: every case, error and interval behind it.
        figures: figures by name.
        data: labelled arrays by name, name → (dimensions, values).
        parts: part of the statement → its decision, where there are several; `decision` is `all_of` them.
        difference: one sentence on what departs from the statement although the criterion is met.
    """

    measured: Any
    expected: Any
    tolerance: float | None
    decision: Decision
    details: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, tuple[tuple[str, ...], Any]]] = field(default_factory=dict)
    parts: Mapping[str, Decision] = field(default_factory=dict)
    difference: str = ""

    @classmethod
    def of_error(cls, error: float, tolerance: float, *rest: Any, **others: Any) -> Self:
        """The finding that something is 0, by its error; the other arguments begin with `details`."""
        return cls(error, 0.0, tolerance, within(error, tolerance), *rest, **others)

    @classmethod
    def of_errors(cls, errors: Mapping[str, float], tolerance: float, *rest: Any, **others: Any) -> Self:
        """The finding that several things are 0, each of them a part; the other arguments begin with `details`."""
        parts = {name: within(abs(error), tolerance) for name, error in errors.items()}
        return cls.of_parts(errors, dict.fromkeys(errors, 0.0), tolerance, parts, *rest, **others)

    @classmethod
    def of_parts(
        cls,
        measured: Any,
        expected: Any,
        tolerance: float | None,
        parts: Mapping[str, Decision],
        *rest: Any,
        **others: Any,
    ) -> Self:
        """The finding on a statement of several parts; its decision is `all_of` them."""
        found = cls(measured, expected, tolerance, all_of(*parts.values()), *rest, **others)
        return replace(found, parts=parts)


_ELSEWHERE = ("measured, reduced", "measured, another model")  # kinds of evidence


@dataclass(frozen=True)
class Claim(Generic[S]):
    """One statement, its source, and how it is checked.

    Texts that run over several lines are joined to one.

    Attributes:
        id: `paper/claim`.
        title: the claim in at most twelve words.
        statement: one sentence of at most 35 words that can be true or false. Sizes are in `settings`.
        source: bib key, and the number of the theorem, equation or figure, or file and line of the authors' program.
        origin: who says it; see `mesascope.records.Origin`.
        evidence: what the small preset's outcome rests on; see `mesascope.records.Evidence`.
        settings: what `check` is given, for every preset; with the code it determines the result.
        check: from settings to finding.
        criterion: what decides, and why the tolerance (or threshold) is what it is.
        full_evidence: the same of the full preset; by default that of the small one.
        history: what was tried before, and which seeds were looked at before these.
        cost: estimated time of the full preset on two cores, where it was not run: "about 3 h"; of a claim of one size, why
            the paper's setting cannot be run.
        papers_setting: an estimate of what the paper's own setting would take on two cores, where no preset is it: "about
            5 h"; or why there is none.
    """

    id: str
    title: str
    statement: str
    source: str
    origin: Origin
    evidence: Evidence
    settings: Mapping[Preset, S]
    check: Callable[[S], Finding]
    criterion: str
    full_evidence: Evidence | None = None
    history: str = ""
    cost: str = ""
    papers_setting: str = ""

    def __post_init__(self) -> None:
        for name in ("title", "statement", "source", "criterion", "history"):
            object.__setattr__(self, name, one_line(getattr(self, name)))

    def __repr__(self) -> str:
        return f"<Claim {self.id}: {self.title}>"

    def _repr_html_(self) -> str:
        names = ("title", "statement", "source", "origin", "evidence", "criterion", "cost", "papers_setting")
        return html_table(self.id, [(name, text) for name in names if (text := getattr(self, name))])

    def not_run(self, preset: str | None) -> str:
        """What a check under a preset (the small one if none is named) leaves open: the paper's setting, the full preset."""
        full = preset == "full"
        if self.one_size:
            cost = self.cost
        else:
            cost = f"the full preset was not run: {self.cost} on two cores" if self.cost and not full else ""
        smaller = self.origin != "ours" and self.evidence_of("full" if full else "small") in _ELSEWHERE
        takes = f" ({self.papers_setting})" if self.papers_setting else ""
        return "; ".join(filter(None, [f"not run at the paper's setting{takes}" if smaller else "", cost]))

    def seed(self, preset: Preset) -> int | None:
        """The seed under a preset, None where nothing is sampled."""
        return getattr(self.settings[preset], "seed", None)

    def evidence_of(self, preset: Preset) -> Evidence:
        """What the outcome rests on under a preset."""
        return (self.full_evidence or self.evidence) if preset == "full" else self.evidence

    def outcome(self, finding: Finding, preset: Preset) -> Outcome:
        """What a finding under a preset says of the claim."""
        return outcome_of(finding.decision, self.evidence_of(preset), finding.difference)

    @property
    def one_size(self) -> bool:
        """Whether both presets check it with the same settings."""
        return self.settings["small"] == self.settings["full"]


@dataclass(frozen=True)
class Difference:
    """One row of a paper's table "What differs from the paper's setting".

    Attributes:
        what: `model`, `data`, `optimizer`, `steps`, `batch`, `precision` or `evaluation`; or what leaves the setting the
            paper's: `seeds`, or `implementation`, equal but for rounding or as in the text where the program departs from it.
        paper: what the paper or its authors' program does, with the place where that was read.
        here: what is done here.
        claims: names of the claims that it concerns, without the paper; all that are measured, where there are none.
        presets: those under which it is so.
        departure: how far it is from the paper's.
    """

    what: str
    paper: str
    here: str
    claims: tuple[str, ...] = ()
    presets: tuple[Preset, ...] = PRESETS
    departure: Departure = "other"

    def concerns(self, claim: Claim, preset: Preset) -> bool:
        """Whether a claim's check under a preset departs from the paper in this."""
        named = not self.claims or claim.id.partition("/")[2] in self.claims
        return named and preset in self.presets and claim.evidence_of(preset).startswith("measured")


def one_line(text: str) -> str:
    """The text with a single space for every line break and the indentation after it."""
    return " ".join(text.split())


def presets(small: S, **full: Any) -> dict[Preset, S]:
    """Settings of the small preset, and of the full one where some differ."""
    return {"small": small, "full": replace(small, **full)}


def verdict_if(holds: bool) -> Decision:
    """Whether a criterion that knows yes or no is met."""
    return "met" if holds else "not met"


def all_of(*decisions: Decision) -> Decision:
    """The decision on a statement of several parts: not met with any of them, else undecided with any, else met."""
    for decision in ("not met", "undecided"):
        if decision in decisions:
            return decision
    return "met"


def within(error: float, tolerance: float) -> Decision:
    """Met when the error is within the tolerance, else not met.

    An error that is NaN does not meet it; if the tolerance is NaN, the decision is undecided.
    """
    return "undecided" if isnan(tolerance) else verdict_if(error <= tolerance)


class UnsettledError(RuntimeError):
    """A computation that a claim depends on did not finish: nothing is decided."""
