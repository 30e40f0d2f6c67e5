"""Why the record of a claim is stale."""

from __future__ import annotations

from mesascope.records import ClaimRecord, Provenance, RecordError, RunDirectory, plain, provenance

from ._claim import Settings


def why_stale(run: RunDirectory, claim: str, settings: Settings, rerun: bool = False) -> str | None:
    """What makes the stored record of a claim no answer for the claim as it is now; None where there is no record.

    Args:
        run: where the record lies; without `rerun` it is known not to be reusable.
        claim: the claim's id.
        settings: those of now.
        rerun: whether everything is checked again, whatever the record says.
    """
    if not (run.path / "claims" / f"{claim}.json").exists():
        return None
    if rerun:
        return "asked for"
    try:
        record = run.read_claim(claim)
    except RecordError:
        return "its record cannot be read"
    return _difference(record, settings) or "a figure or data file of it is missing or damaged"


def _difference(record: ClaimRecord, settings: Settings) -> str | None:
    then, now = record.provenance, provenance()
    if record.setting != plain(settings.as_table()):
        return "its settings changed"
    if then.code == now.code:
        return None
    versions = _other_versions(then, now)
    day = then.created[:10]
    return (
        f"the code or a library changed since {day}: {versions}"
        if versions
        else f"the code changed since {day}"
    )


def _other_versions(then: Provenance, now: Provenance) -> str:
    found = {"mesascope": (then.mesascope, now.mesascope)}
    found |= {name: (then.packages.get(name, "none"), version) for name, version in now.packages.items()}
    return ", ".join(f"{name} {old} → {new}" for name, (old, new) in found.items() if old != new)
