"""The record of one checked claim, and the fingerprint that decides whether its result is reused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from ._html import html_table
from ._identity import identity
from ._plain import PlainMapping, PlainValue, canonical_json
from ._provenance import Provenance, code_version

Decision = Literal["met", "not met", "undecided"]
"""What a check says of its criterion; undecided where an interval contains its threshold or a run did not end."""
Evidence = Literal[
    "proved", "exact", "measured at the paper's setting", "measured, reduced", "measured, another model"
]
"""The evidence of an outcome.

- `proved`: a certificate in balls and rationals, which can be checked again;
- `exact`: computed without sampling, to rounding and the solver's tolerance, at the sizes listed;
- `measured at the paper's setting`: sampled or trained as in the paper or its program, but for seeds;
- `measured, reduced`: the same with smaller sizes, or another optimizer, batch or number of steps;
- `measured, another model`: trained or sampled with a model or data that the paper does not use.
"""
Outcome = Literal[
    "holds", "holds with a difference", "contradicted", "not reproduced at this scale", "undecided"
]
"""What the evidence says of a claim; see `outcome_of`."""
Verdict = Literal["verified", "refuted", "inconclusive"]
"""An outcome in one of three words, for scripts; see `VERDICTS`."""
Origin = Literal["paper", "paper, second-hand", "authors' code", "review", "ours"]
"""The origin of a claim.

`paper`: its text, at a place that was read; `paper, second-hand`: the paper as others or notes report it;
`authors' code`: their program or its output; `review`: the reviews of the paper; `ours`: found or derived here.
"""
VERDICTS: dict[Outcome, Verdict] = {
    "holds": "verified",
    "holds with a difference": "verified",
    "contradicted": "refuted",
    "not reproduced at this scale": "inconclusive",
    "undecided": "inconclusive",
}
"""Outcome → verdict, in the order in which tables list outcomes."""
SIGNS: dict[Outcome, str] = {
    "holds": "✓",
    "holds with a difference": "≈",
    "contradicted": "✗",
    "not reproduced at this scale": "○",
    "undecided": "?",
}
"""Outcome → the sign before it, so that it is not shown by colour alone."""
IMPORTANCE: tuple[Outcome, ...] = (
    "contradicted",
    "not reproduced at this scale",
    "holds with a difference",
    "undecided",
    "holds",
)
"""Outcomes in the order in which a reader wants to see them."""
_CONTRADICTS: tuple[Evidence, ...] = ("proved", "exact", "measured at the paper's setting")


def outcome_of(decision: Decision, evidence: Evidence, difference: str = "") -> Outcome:
    """The outcome of a decision, given its evidence.

    A criterion that is not met contradicts a claim only by proof, by exact computation or at the paper's own setting. At
    any other the claim is not reproduced, which says nothing about the paper.

    Args:
        decision: whether the criterion is met.
        evidence: what the check computes with.
        difference: one sentence that says in what the finding departs from the statement, if it does.
    """
    if decision == "undecided":
        return "undecided"
    if decision == "met":
        return "holds with a difference" if difference else "holds"
    return "contradicted" if evidence in _CONTRADICTS else "not reproduced at this scale"


# One or more parts joined by '/'; lower case, so that two names never meet on a file system that folds case.
_PART = r"[a-z0-9][a-z0-9._-]*"
NAME = rf"^{_PART}(/{_PART})*$"
_MAX_SHOWN = 300  # characters of a value in a notebook
NO_FINGERPRINT = "failed"
"""The fingerprint of a failed check; it equals no other, so that the record is never reused."""
ClaimId = Annotated[str, StringConstraints(pattern=rf"^{_PART}/{_PART}$", max_length=160)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ClaimRecord(BaseModel, frozen=True, extra="forbid"):
    """One checkable statement of one paper, and what checking it gave.

    Values are stored in the form of `plain`: arrays as lists, `Fraction` as `"p/q"`, NaN and infinities by
    name.

    Attributes:
        id: `paper/claim`, e.g. `zheng2024/theorem-4.1`.
        title: the claim in a few words.
        statement: the claim in one sentence.
        source: bib key, and number of the theorem or figure or the file and line of the authors' program.
        origin: who says it.
        evidence: of the outcome.
        decision: whether the criterion is met.
        difference: in what the finding departs from the statement, one sentence; empty where it does not.
        criterion: what decides, with the reason for the tolerance or threshold.
        history: what was tried before, and which seeds were looked at; empty where nothing was.
        parts: part of the statement → its decision; empty where there is one part.
        measured: what was computed: a number, or a list or mapping of numbers.
        expected: what the claim says it is.
        tolerance: the largest difference that still meets the criterion, ≥ 0; None where none applies.
        seconds: wall time of the check, ≥ 0.
        details: further numbers: every case of the claim, errors, intervals.
        setting: the sizes, steps, seeds and thresholds with which it was checked.
        preset: name of the set of settings, `small` or `full`.
        seed: seed of everything sampled; None where nothing was.
        fingerprint: the result is reused under an equal one; see `fingerprint`.
        files: data and figures that belong to it, as paths relative to the run directory.
        provenance: versions, commit, platform and time of the run.
    """

    id: ClaimId
    title: Text
    statement: Text
    source: Text
    origin: Origin
    evidence: Evidence
    decision: Decision
    difference: str = ""
    criterion: Text
    history: str = ""
    parts: dict[str, Decision] = {}
    measured: PlainValue
    expected: PlainValue
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    details: PlainMapping = {}
    setting: PlainMapping = {}
    preset: str | None = None
    seed: int | None = None
    fingerprint: str
    files: tuple[str, ...] = ()
    provenance: Provenance

    def __repr__(self) -> str:
        return f"<ClaimRecord {self.id}: {self.outcome}; {self.evidence}; {self.title}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        names = ("statement", "source", "evidence", "criterion", "difference")
        rows = [(name, text) for name in names if (text := getattr(self, name))]
        rows += [("measured", _short(self.measured)), ("expected", _short(self.expected))]
        return html_table(f"{self.id}: {self.outcome}", rows)

    @property
    def failed(self) -> bool:
        """Whether the check ended in an error, which says nothing about the claim."""
        return self.fingerprint == NO_FINGERPRINT

    @property
    def outcome(self) -> Outcome:
        """What was found of the claim."""
        return outcome_of(self.decision, self.evidence, self.difference)

    @property
    def verdict(self) -> Verdict:
        """The outcome in one of three words."""
        return VERDICTS[self.outcome]


def _short(value: PlainValue) -> str:
    text = canonical_json(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} …"


def fingerprint(claim: str, spec: Any, preset: str | None = None, code: str | None = None) -> str:
    """The `identity` of a claim's result: with an equal one, running again would give the stored result.

    Args:
        claim: the claim's id.
        spec: its settings, anything that `plain` takes.
        preset: the name of the set of settings.
        code: digest of the code; by default `code_version()`.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: `spec` holds something that a record cannot.
    """
    return identity("claim", {"claim": claim, "settings": spec, "preset": preset}, code or code_version())
