"""Outcomes beside those of an earlier run: what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mesascope.records import ClaimRecord, RecordError, RunDirectory

from ._claim import Preset
from ._registry import PAPERS

NOT_THERE, FAILED = "not there", "failed"


@dataclass(frozen=True)
class Change:
    """One claim whose outcome is not what it was.

    Attributes:
        id: the claim.
        then: its outcome in the earlier run, or `not there`.
        now: its outcome, `failed` if it could not be checked, or `not there` if there is no such claim any more.
    """

    id: str
    then: str
    now: str


def earlier_outcomes(folder: str | Path, preset: Preset) -> dict[str, str]:
    """Claim → outcome, of an earlier run with this preset.

    Args:
        folder: what the earlier run was given as `out`, or the folder of its preset below that.
        preset: records of another are left out.

    Raises:
        RecordError: there is no such folder, it holds no record of the preset, or one that cannot be read.
    """
    root = Path(folder)
    runs = RunDirectory(root / preset), RunDirectory(root)
    run = next((one for one in runs if one.holds_claims()), runs[-1])
    section = run.path / "claims"
    files = [path for path in sorted(section.glob("*/*.json")) if not path.name.startswith(".")]
    ids = [path.relative_to(section).with_suffix("").as_posix() for path in files]
    found = {record.id: record.outcome for record in map(run.read_claim, ids) if record.preset == preset}
    if not found:
        raise RecordError(
            f"{str(folder)!r} holds no records of preset {preset!r}; give a folder that `mesascope reproduce` filled with it"
        )
    return dict(found)


def changes(
    records: Sequence[ClaimRecord], earlier: dict[str, str], selection: Sequence[str] = ()
) -> list[Change]:
    """What differs between records of now and outcomes of an earlier run, sorted by claim.

    Args:
        records: those of now; a check that failed has its error in its details.
        earlier: as `earlier_outcomes`.
        selection: what the records were asked for by; of its whole papers every earlier claim is expected.
    """
    now = {record.id: FAILED if record.failed else record.outcome for record in records}
    papers = set(selection) & set(PAPERS)
    gone = {id for id in earlier if not selection or id.partition("/")[0] in papers} - set(now)
    found = [Change(id, earlier.get(id, NOT_THERE), now.get(id, NOT_THERE)) for id in sorted({*now, *gone})]
    return [one for one in found if one.then != one.now]
