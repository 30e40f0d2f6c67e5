"""Check claims, one after the other, into a run directory that remembers the finished ones."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mesascope.core import forget_programs, require_x64
from mesascope.records import ClaimRecord, RunDirectory, fingerprint, provenance

from ._claim import PRESETS, Claim, Finding, Preset
from ._registry import claims

_FAILED = "failed"  # equals no fingerprint: a failed check is never reused


@dataclass(frozen=True)
class Event:
    """What a watcher of `reproduce` is told: a claim starts, is done, or is reused from an earlier run."""

    kind: Literal["start", "done", "reused"]
    claim: Claim
    index: int
    total: int
    record: ClaimRecord | None


@dataclass(frozen=True)
class Reproduction:
    """The result of checking claims.

    Attributes:
        records: one record per claim, in order.
        folder: the run directory with records, data and figures.
    """

    records: tuple[ClaimRecord, ...]
    folder: Path

    @property
    def refuted(self) -> bool:
        """Whether any claim was refuted."""
        return any(record.verdict == "refuted" for record in self.records)

    @property
    def failed(self) -> bool:
        """Whether the check of any claim ended in an error (its verdict is then inconclusive)."""
        return any(record.fingerprint == _FAILED for record in self.records)


def reproduce(
    *selection: str,
    preset: Preset = "quick",
    out: str | Path | None = None,
    watch: Callable[[Event], None] | None = None,
    rerun: bool = False,
) -> Reproduction:
    """Check claims of the literature by computation.

    Every finished claim is on disk before the next one starts. Interrupt and call again: claims that were finished with
    the same settings by the same code are reused.

    Args:
        *selection: papers or claim ids; every claim of every paper by default.
        preset: `"quick"` (minutes on a laptop) or `"paper"` (the papers' own sizes).
        out: run directory; by default `results/<selection>-<preset>` below the current folder.
        watch: called at the start and end of every claim.
        rerun: check everything anew.

    Raises:
        ValueError: for an unknown paper, claim or preset, a folder that cannot be written, or 64-bit mode off.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; use {' or '.join(PRESETS)}")
    chosen = claims(*selection)
    require_x64("reproduce")
    folder = Path(out) if out is not None else Path("results") / f"{_label(selection)}-{preset}"
    run = RunDirectory.create(folder)
    tell = watch or (lambda event: None)
    records = []
    for index, claim in enumerate(chosen):
        mark = fingerprint(claim.id, claim.settings[preset], preset)
        record = None if rerun else run.reusable_claim(claim.id, mark)
        kind: Literal["done", "reused"] = "reused"
        if record is None:
            tell(Event("start", claim, index, len(chosen), None))
            record, kind = _check(claim, preset, run, mark), "done"
            forget_programs()  # a hundred claims compile more than a process may keep
        records.append(record)
        tell(Event(kind, claim, index, len(chosen), record))
    return Reproduction(tuple(records), run.path)


def _check(claim: Claim, preset: Preset, run: RunDirectory, mark: str) -> ClaimRecord:
    settings = claim.settings[preset]
    begin = time.perf_counter()
    try:
        finding = claim.check(settings)
    except Exception as error:  # one failing check must not take the others with it; its record says why
        mark = _FAILED
        details: dict[str, Any] = {
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
        finding = Finding(None, None, None, "inconclusive", details)
    seconds = time.perf_counter() - begin
    paper = claim.id.partition("/")[0]
    files = [run.write_figure(f"{paper}/{name}", figure) for name, figure in finding.figures.items()]
    files += [run.write_data(f"{paper}/{name}", data) for name, data in finding.data.items()]
    record = ClaimRecord(
        id=claim.id,
        statement=claim.statement,
        source=claim.source,
        origin=claim.origin,
        measured=finding.measured,
        expected=finding.expected,
        tolerance=finding.tolerance,
        verdict=finding.verdict,
        seconds=seconds,
        details={**finding.details, "tolerance_reason": claim.tolerance_reason},
        spec=dict(settings),
        preset=preset,
        seed=claim.seed(preset),
        fingerprint=mark,
        files=tuple(files),
        provenance=provenance(),
    )
    run.write_claim(record)
    return record


def _label(selection: tuple[str, ...]) -> str:
    papers = {one.partition("/")[0] for one in selection}
    return papers.pop() if len(papers) == 1 else "claims"
