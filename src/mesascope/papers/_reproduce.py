"""Check claims, one after the other, into a run directory that remembers the finished ones."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from mesascope.core import forget_programs, require_x64
from mesascope.records import NO_FINGERPRINT, ClaimRecord, RunDirectory, fingerprint, provenance

from ._claim import PRESETS, Claim, Finding, Preset, UnsettledError
from ._earlier import why_stale
from ._progress import working
from ._registry import claims


@dataclass(frozen=True)
class Event:
    """What `reproduce` reports: a claim starts, makes progress, is done, or is reused from an earlier run.

    `stale` says why an existing record is not reused; `progress` is that of a training inside it.
    """

    kind: Literal["start", "progress", "done", "reused"]
    claim: Claim
    index: int
    total: int
    record: ClaimRecord | None
    stale: str | None = None
    progress: str = ""


@dataclass(frozen=True)
class Reproduction:
    """The result of checking claims.

    Attributes:
        records: one record per claim, in order.
        folder: the run directory with records, data and figures.
        stale: claim → why an existing record was not reused.
    """

    records: tuple[ClaimRecord, ...]
    folder: Path
    stale: Mapping[str, str] = field(default_factory=dict)

    @property
    def contradicted(self) -> bool:
        """Whether any claim was contradicted."""
        return any(record.outcome == "contradicted" for record in self.records)

    @property
    def failed(self) -> bool:
        """Whether the check of any claim ended in an error (it is then undecided)."""
        return any(record.failed for record in self.records)


def reproduce(
    *selection: str,
    preset: Preset = "small",
    out: str | Path | None = None,
    watch: Callable[[Event], None] | None = None,
    rerun: bool = False,
) -> Reproduction:
    """Check claims of the literature by computation.

    Every finished claim is on disk before the next one starts. Interrupt and call again: claims that were finished with
    the same settings by the same code are reused, and with the full preset a training inside an unfinished claim goes on from
    its last checkpoint. The record of a check that ended in an error goes to `failed` in the run directory and replaces no
    other.

    Args:
        *selection: papers or claim ids; every claim of every paper by default.
        preset: `"small"` (minutes on a laptop) or `"full"` (the papers' own sizes, as far as a claim says so).
        out: folder in which the run directory has the preset's name, so that records of the two presets stay separate; by
            default `results/<selection>` below the current folder.
        watch: called at the start and end of every claim, and while its models are trained, then from other threads.
        rerun: check everything again.

    Raises:
        ValueError: for an unknown paper, claim or preset, a folder that cannot be written or holds records of a newer
            version, or 64-bit mode off.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is unknown; use {' or '.join(PRESETS)}")
    chosen = claims(*selection)
    require_x64("reproduce")
    if out is not None and not str(out):
        raise ValueError(
            "the output folder has an empty name; give one, or none for a folder below ./results"
        )
    folder = Path(out) if out is not None else Path("results") / _label(selection)
    run = RunDirectory.create(folder / preset)
    for claim in chosen:
        run.refuse_newer(claim.id)
    report = watch or (lambda event: None)
    records: list[ClaimRecord] = []
    stale: dict[str, str] = {}
    for index, claim in enumerate(chosen):
        mark = fingerprint(claim.id, claim.settings[preset].as_table(), preset)
        record = None if rerun else run.reusable_claim(claim.id, mark)
        if record is not None:
            _remove_unfinished(run, claim.id)
            report(Event("reused", claim, index, len(chosen), record))
        else:
            why = why_stale(run, claim.id, claim.settings[preset], rerun)
            started = Event("start", claim, index, len(chosen), None, why)
            report(started)
            checkpoints = _checkpoint_folder(run, claim.id, mark) if preset == "full" else None
            _remove_unfinished(run, claim.id, but=checkpoints)
            with working(partial(_report_progress, report, started), checkpoints):
                record = _check(claim, preset, run, mark)
            if not record.failed:
                _remove_unfinished(run, claim.id)
            forget_programs()  # a hundred claims compile more than a process may keep
            stale |= {claim.id: why} if why else {}
            report(Event("done", claim, index, len(chosen), record, why))
        records.append(record)
    return Reproduction(tuple(records), run.path, stale)


def _report_progress(report: Callable[[Event], None], started: Event, line: str) -> None:
    report(replace(started, kind="progress", progress=line))


def _checkpoint_folder(run: RunDirectory, claim: str, mark: str) -> Path:
    """Where trainings of a claim keep checkpoints until it is done; those of the small preset are quickly repeated."""
    return run.path / "unfinished" / claim / mark[:16]


def _remove_unfinished(run: RunDirectory, claim: str, but: Path | None = None) -> None:
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


def _label(selection: tuple[str, ...]) -> str:
    papers = {one.partition("/")[0] for one in selection}
    return papers.pop() if len(papers) == 1 else "claims"
