"""Claims beside the records of them that the package ships."""

from __future__ import annotations

from mesascope.records import SHIPPED, ClaimRecord, RecordError, RunDirectory, plain

from ._claim import PRESETS, Claim, Preset


def shipped_run(preset: Preset) -> RunDirectory:
    """The run directory of the shipped records of one preset."""
    return RunDirectory(SHIPPED / preset)


def shipped_record(claim: Claim) -> ClaimRecord | None:
    """The shipped record that says most of a claim: that of the full preset, else of the small one; None without any.

    Raises:
        RecordError: the record cannot be read.
    """
    for preset in reversed(PRESETS):
        run = shipped_run(preset)
        if (run.path / "claims" / f"{claim.id}.json").exists():
            return run.read_claim(claim.id)
    return None


def restated(record: ClaimRecord, claim: Claim) -> ClaimRecord:
    """The record with the claim's title, source, origin and history as they are now: nothing was decided by them.

    Raises:
        RecordError: what was checked was another statement, or with another criterion, evidence or settings.
    """
    preset: Preset = "full" if record.preset == "full" else "small"
    changed = [name for name in ("statement", "criterion") if getattr(record, name) != getattr(claim, name)]
    if record.evidence != claim.evidence_of(preset):
        changed.append("evidence")
    if record.setting != plain(dict(claim.settings[preset])):
        changed.append("settings")
    if changed:
        what = " and ".join(changed)
        again = f"mesascope reproduce {claim.id} --preset {preset}"
        raise RecordError(f"{claim.id}, {preset}: {what} changed since it was checked; run `{again}`")
    words = ("title", "source", "origin", "history")
    return record.model_copy(update={name: getattr(claim, name) for name in words})
