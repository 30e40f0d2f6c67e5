"""Check claims into a run directory that remembers the finished ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from mesascope.core import integer_at_least, require_x64
from mesascope.records import ClaimRecord, Figure, RunDirectory, fingerprint, html_table
from mesascope.specs import show

from ._check import Job, check, remove_unfinished
from ._claim import PRESETS, Claim, Preset
from ._earlier import why_stale
from ._processes import check_in_processes, sharing
from ._registry import claims


@dataclass(frozen=True)
class Event:
    """What `reproduce` reports: a claim starts, makes progress, is done, or is reused from an earlier run.

    `index` counts the claims that were finished before; `stale` says why an existing record is not reused; `progress` is that
    of a training inside it. Its files are in `folder`, the run directory.
    """

    kind: Literal["start", "progress", "done", "reused"]
    claim: Claim
    index: int
    total: int
    folder: Path
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

    def __repr__(self) -> str:
        return f"<Reproduction: {self._counts()}; in {self.folder}>"

    def _repr_html_(self) -> str:
        rows = [(one.id, one.title, one.outcome, one.evidence) for one in self.records]
        return html_table(self._counts(), rows, ("claim", "title", "outcome", "evidence"))

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures in the folder, by name; `ms.plot` draws them."""
        directory = RunDirectory(self.folder)
        return {name: directory.read_figure(name) for name in directory.figures()}

    def _counts(self) -> str:
        counts = Counter(record.outcome for record in self.records)
        return ", ".join(f"{outcome}: {count}" for outcome, count in counts.most_common()) or "no claims"

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
    workers: int = 1,
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
        watch: called at the start and end of every claim, and while its models are trained, then perhaps from other threads.
        rerun: check everything again.
        workers: processes that check claims at the same time; with one, claims are checked here. A program that uses more
            is a file with `if __name__ == "__main__":`, as for every use of `multiprocessing`.

    Raises:
        ValueError: for an unknown paper, claim or preset, a folder that cannot be written or holds records of a newer
            version, or 64-bit mode off.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset {show(preset)} is unknown; use {' or '.join(PRESETS)}")
    chosen = claims(*selection)
    require_x64("reproduce")
    integer_at_least("workers", workers, 1)
    if out is not None and not str(out):
        raise ValueError(
            "the output folder has an empty name; give one, or none for a folder below ./results"
        )
    folder = Path(out) if out is not None else Path("results") / _label(selection)
    run = RunDirectory.create(folder / preset)
    for claim in chosen:
        run.refuse_newer(claim.id)
    report = watch or (lambda event: None)
    found: dict[str, ClaimRecord] = {}
    jobs: list[Job] = []
    for claim in chosen:
        mark = fingerprint(claim.id, claim.settings[preset].as_table(), preset)
        record = None if rerun else run.reusable_claim(claim.id, mark)
        if record is None:
            jobs.append(Job(claim, preset, mark, why_stale(run, claim.id, claim.settings[preset], rerun)))
            continue
        remove_unfinished(run, claim.id)
        report(Event("reused", claim, len(found), len(chosen), run.path, record))
        found[claim.id] = record
    by_id = {job.claim.id: job for job in jobs}

    def tell(kind: Literal["start", "progress", "done"], id: str, what: ClaimRecord | str | None) -> None:
        job = by_id[id]
        progress = what if isinstance(what, str) else ""
        record = what if isinstance(what, ClaimRecord) else None
        report(Event(kind, job.claim, len(found), len(chosen), run.path, record, job.stale, progress))
        if record is not None:
            found[id] = record

    groups = sharing(jobs)
    if min(workers, len(groups)) > 1:
        check_in_processes(groups, workers, run, tell)
    else:
        for job in jobs:
            tell("start", job.claim.id, None)
            tell("done", job.claim.id, check(job, run, partial(tell, "progress", job.claim.id)))
    stale = {job.claim.id: job.stale for job in jobs if job.stale}
    records = [found[claim.id] for claim in chosen]
    return Reproduction(tuple(records), run.path, stale)


def _label(selection: tuple[str, ...]) -> str:
    papers = {one.partition("/")[0] for one in selection}
    return papers.pop() if len(papers) == 1 else "claims"
