"""Earlier records of claims: those that the package ships, those of another run, and why one is not reused."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mesascope.records import SHIPPED, ClaimRecord, Provenance, RecordError, RunDirectory, plain, provenance

from ._claim import PRESETS, Claim, Preset, Settings
from ._registry import PAPERS

NOT_THERE, FAILED = "not there", "failed"


def shipped_run(preset: Preset) -> RunDirectory:
    """The run directory of the shipped records of one preset."""
    return RunDirectory(SHIPPED / preset)


def shipped_record(claim: Claim) -> ClaimRecord | None:
    """The shipped record of a claim: that of the full preset, else of the small one.

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


def why_stale(run: RunDirectory, claim: str, settings: Settings, rerun: bool = False) -> str | None:
    """Why the stored record of a claim does not answer the claim as it is now; None where there is no record.

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
    what, which = ("code or a library", f": {versions}") if versions else ("code", "")
    return f"the {what} changed since {day}{which}"


def _other_versions(then: Provenance, now: Provenance) -> str:
    found = {"mesascope": (then.mesascope, now.mesascope)}
    found |= {name: (then.packages.get(name, "none"), version) for name, version in now.packages.items()}
    return ", ".join(f"{name} {old} → {new}" for name, (old, new) in found.items() if old != new)


@dataclass(frozen=True)
class Change:
    """One claim whose outcome differs from that of an earlier run.

    Attributes:
        id: the claim.
        then: its outcome in the earlier run, or `not there`.
        now: its outcome, `failed` if it could not be checked, or `not there` if there is no such claim any more.
    """

    id: str
    then: str
    now: str


def earlier_outcomes(folder: str | Path, preset: Preset) -> dict[str, str]:
    """Claim → outcome, of an earlier run with this preset. A warning names each record that cannot be read.

    Args:
        folder: what the earlier run was given as `out`, or the folder of its preset below that.
        preset: records of the other one are left out.

    Raises:
        RecordError: there is no such folder, or it holds no record of the preset.
        OSError: a folder in it may not be read.
    """
    root = Path(folder)
    runs = RunDirectory(root / preset), RunDirectory(root)
    run = next((one for one in runs if one.holds_claims()), runs[-1])
    section = run.path / "claims"
    files = [path for path in sorted(section.glob("*/*.json")) if not path.name.startswith(".")]
    ids = [path.relative_to(section).with_suffix("").as_posix() for path in files]
    found: dict[str, str] = {}
    for claim in ids:
        try:
            record = run.read_claim(claim)
        except RecordError as error:
            warnings.warn(f"a record of the earlier run is left out: {error}", stacklevel=2)
            continue
        if record.preset == preset:
            found[claim] = record.outcome
    if not found:
        raise RecordError(
            f"{str(folder)!r} holds no records of preset {preset!r}; give a folder that `mesascope reproduce` filled with it"
        )
    return found


def changes(
    records: Sequence[ClaimRecord], earlier: dict[str, str], selection: Sequence[str] = ()
) -> list[Change]:
    """What differs between new records and outcomes of an earlier run, sorted by claim.

    Args:
        records: the new ones; a check that failed has its error in its details.
        earlier: as `earlier_outcomes`.
        selection: what was checked; of the whole papers in it every earlier claim is expected.
    """
    now = {record.id: FAILED if record.failed else record.outcome for record in records}
    papers = set(selection) & set(PAPERS)
    gone = {id for id in earlier if not selection or id.partition("/")[0] in papers} - set(now)
    found = [Change(id, earlier.get(id, NOT_THERE), now.get(id, NOT_THERE)) for id in sorted({*now, *gone})]
    return [one for one in found if one.then != one.now]
