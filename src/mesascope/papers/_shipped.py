"""Claims beside the records of them that the package ships."""

from __future__ import annotations

from mesascope.records import SHIPPED, ClaimRecord, RecordError, RunDirectory, plain

from ._claim import PRESETS, Claim, Preset


def shipped_run(preset: Preset) -> RunDirectory:
    """The run directory of the shipped records of one preset."""
    return RunDirectory(SHIPPED / preset)


def shipped_record(claim: Claim) -> ClaimRecord | None:
    """The shipped record that says most of a claim: that of the full preset, else of the small one.

    None where there is none of the claim as it is now.

    Raises:
        RecordError: the record cannot be read.
    """
    for preset in reversed(PRESETS):
        run = shipped_run(preset)
        if (run.path / "claims" / f"{claim.id}.json").exists():
            record = run.read_claim(claim.id)
            if not changed(record, claim):
                return record
    return None


def changed(record: ClaimRecord, claim: Claim) -> list[str]:
    """What of a claim is other than when it was checked: statement, criterion, evidence or settings."""
    preset = _preset(record)
    now = {
        "statement": claim.statement,
        "criterion": claim.criterion,
        "evidence": claim.evidence_of(preset),
        "setting": plain(claim.settings[preset].as_table()),
    }
    return [name for name, value in now.items() if getattr(record, name) != value]


def restated(record: ClaimRecord, claim: Claim) -> ClaimRecord:
    """The record with the claim's title, source, origin and history as they are now: nothing was decided by them.

    Raises:
        RecordError: what was checked was another statement, or with another criterion, evidence or setting.
    """
    if what := changed(record, claim):
        again = f"mesascope reproduce {claim.id} --preset {record.preset}"
        raise RecordError(
            f"{claim.id}, {record.preset}: {' and '.join(what)} changed since it was checked; run `{again}`"
        )
    words = ("title", "source", "origin", "history")
    return record.model_copy(update={name: getattr(claim, name) for name in words})


def _preset(record: ClaimRecord) -> Preset:
    return "full" if record.preset == "full" else "small"
