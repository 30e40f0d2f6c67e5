"""The check of one claim: its finding becomes a record, or the error that ended it."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mesascope.core import forget_programs
from mesascope.records import NO_FINGERPRINT, ClaimRecord, RunDirectory, provenance

from ._claim import Claim, Finding, Preset, UnsettledError
from ._progress import working


@dataclass(frozen=True)
class Job:
    """A claim that is to be checked.

    Attributes:
        claim: the claim.
        preset: the preset of its settings.
        mark: the fingerprint of its record.
        stale: why an existing record is not reused; None where there is none.
    """

    claim: Claim
    preset: Preset
    mark: str
    stale: str | None


def check(job: Job, run: RunDirectory, tell: Callable[[str], None]) -> ClaimRecord:
    """Check a claim and store its record.

    Args:
        job: which claim.
        run: where the record goes; that of a check that ended in an error goes to `failed` there.
        tell: called with lines of progress, from threads of trainings.

    Raises:
        RecordError: the record cannot be written.
    """
    folder = _checkpoint_folder(run, job.claim.id, job.mark) if job.preset == "full" else None
    remove_unfinished(run, job.claim.id, but=folder)
    with working(tell, folder):
        record = _check(job.claim, job.preset, run, job.mark)
    if not record.failed:
        remove_unfinished(run, job.claim.id)
    forget_programs()  # a hundred claims compile more than a process may keep
    return record


def failed(job: Job, run: RunDirectory, why: str) -> ClaimRecord:
    """Store the record of a check that came to no end."""
    finding = Finding(None, None, None, "undecided", {"error": why, "traceback": ""})
    return _stored(job.claim, job.preset, finding, 0.0, RunDirectory(run.path / "failed"), NO_FINGERPRINT)


def _checkpoint_folder(run: RunDirectory, claim: str, mark: str) -> Path:
    """Where trainings of a claim keep checkpoints until it is done; those of the small preset are quickly repeated."""
    return run.path / "unfinished" / claim / mark[:16]


def remove_unfinished(run: RunDirectory, claim: str, but: Path | None = None) -> None:
    """Remove checkpoints of a claim, of a finished check or of other code or settings; those in the folder `but` stay."""
    folder = run.path / "unfinished" / claim
    for path in folder.glob("*"):
        if path != but:
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # not empty, or not there
        for empty in (folder, folder.parent, folder.parent.parent):
            empty.rmdir()


def _check(claim: Claim, preset: Preset, run: RunDirectory, mark: str) -> ClaimRecord:
    begin = time.perf_counter()
    try:
        finding = claim.check(claim.settings[preset])
    except UnsettledError as error:  # it would end so again
        finding = _undecided(error)
    except Exception as error:  # one failing check must not stop the others; its record says why
        finding, mark = _undecided(error), NO_FINGERPRINT
        run = RunDirectory(run.path / "failed")  # what was found before stays
    return _stored(claim, preset, finding, time.perf_counter() - begin, run, mark)


def _undecided(error: Exception) -> Finding:
    details = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    return Finding(None, None, None, "undecided", details)


def _stored(
    claim: Claim, preset: Preset, finding: Finding, seconds: float, run: RunDirectory, mark: str
) -> ClaimRecord:
    """Write figures and data, then the record that names them, and remove that of an earlier failure."""
    paper = claim.id.partition("/")[0]
    files = [run.write_figure(f"{paper}/{name}", figure) for name, figure in finding.figures.items()]
    files += [run.write_data(f"{paper}/{name}", data) for name, data in finding.data.items()]
    record = ClaimRecord(
        id=claim.id,
        title=claim.title,
        statement=claim.statement,
        source=claim.source,
        origin=claim.origin,
        evidence=claim.evidence_of(preset),
        decision=finding.decision,
        difference=finding.difference,
        criterion=claim.criterion,
        history=claim.history,
        parts=dict(finding.parts),
        measured=finding.measured,
        expected=finding.expected,
        tolerance=finding.tolerance,
        seconds=seconds,
        details=dict(finding.details),
        setting=claim.settings[preset].as_table(),
        preset=preset,
        seed=claim.seed(preset),
        fingerprint=mark,
        files=tuple(files),
        provenance=provenance(),
    )
    run.write_claim(record)
    if not record.failed:
        with suppress(OSError):
            (run.path / "failed" / "claims" / f"{claim.id}.json").unlink()
    return record
