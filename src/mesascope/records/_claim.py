"""The record of one checked claim, and the fingerprint under which its result may be reused."""

import hashlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ._plain import PlainMapping, PlainValue, canonical_json
from ._provenance import Provenance, code_version

Verdict = Literal["verified", "refuted", "inconclusive"]
"""What checking a claim gave; inconclusive where the check failed or its interval decides nothing."""
Origin = Literal["paper", "review", "ours"]
"""Who says what a claim states: the paper, its reviews, or this package."""

# One or more parts joined by '/'; lower case, so that two names never meet on a file system that folds case.
_PART = r"[a-z0-9][a-z0-9._-]*"
NAME = rf"^{_PART}(/{_PART})*$"
NO_FINGERPRINT = "failed"
"""The fingerprint of a failed check: equal to none, so that it is never reused."""
ClaimId = Annotated[str, StringConstraints(pattern=rf"^{_PART}/{_PART}$", max_length=160)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ClaimRecord(BaseModel):
    """One checkable statement of one paper, and what checking it gave.

    Values are stored in the form of `plain`: arrays as lists, `Fraction` as `"p/q"`, NaN and infinities by
    name.

    Attributes:
        id: `paper/claim`, e.g. `zheng2024/theorem-4.1`.
        statement: the claim in one sentence.
        source: where it stands: bib key and number of the theorem, equation or figure.
        origin: who says it: `paper`, `review` or `ours`; None in records from before it was taken down.
        measured: what was computed: a number, or a list or mapping of numbers.
        expected: what the claim says it is.
        tolerance: the largest difference that still verifies it, ≥ 0; None where none applies.
        verdict: `verified`, `refuted` or `inconclusive`.
        seconds: wall time of the check, ≥ 0.
        details: whatever else helps to judge: every case of the claim, errors, intervals.
        spec: the settings under which it was checked.
        preset: name of the set of settings, e.g. `quick`.
        seed: seed of everything sampled; None where nothing was.
        fingerprint: under what the result may be reused; see `fingerprint`.
        files: data and figures that belong to it, as paths relative to the run directory.
        provenance: versions, commit, platform and time of the run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: ClaimId
    statement: Text
    source: Text
    origin: Origin | None = None
    measured: PlainValue
    expected: PlainValue
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    verdict: Verdict
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    details: PlainMapping = {}
    spec: PlainMapping = {}
    preset: str | None = None
    seed: int | None = None
    fingerprint: str
    files: tuple[str, ...] = ()
    provenance: Provenance

    @property
    def failed(self) -> bool:
        """Whether the check ended in an error, which says nothing about the claim."""
        return self.fingerprint == NO_FINGERPRINT


def fingerprint(claim: str, spec: Any, preset: str | None = None, code: str | None = None) -> str:
    """Digest of everything that a claim's result depends on.

    A stored result is the result of running again exactly when the fingerprints are equal.

    Args:
        claim: the claim's id.
        spec: its settings, anything that `plain` takes.
        preset: the name of the set of settings.
        code: digest of the code; by default `code_version()`.

    Returns:
        64 hexadecimal digits: SHA-256 of the canonical JSON of the four.

    Raises:
        TypeError: `spec` holds something that a record cannot.
    """
    parts = {"claim": claim, "spec": spec, "preset": preset, "code": code or code_version()}
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()
