"""What the page of claims shows, computed in a worker's process: all claims, and a check of one."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any

from mesascope.papers import INSIGHTS, Event, reproduce
from mesascope.papers import claims as known_claims
from mesascope.records import InUseError, folder_lock, plain

from ._jobs import Report

Result = dict[str, Any]


def claims(progress: Report) -> list[Result]:
    """Every claim of every paper: what it says, how it is checked, and what was found here that no paper says."""
    progress("listing the claims")
    fields = ("id", "title", "statement", "source", "origin", "evidence", "criterion")
    found = {insight.claim: insight.text for insight in INSIGHTS}
    return [
        {
            **{name: getattr(claim, name) for name in fields},
            "setting": plain(claim.settings["small"].as_table()),
            "insight": found.get(claim.id, ""),
        }
        for claim in known_claims()
    ]


def rerun(claim: str, folder: str, progress: Report) -> Result:
    """Check one claim again into a folder of records: its outcome, and the error of a check that failed.

    Raises:
        ValueError: another process is checking it into this folder.
    """
    progress(f"checking {claim}; this may take minutes")
    check = f"check-{claim.replace('/', '-')}"
    one_at_a_time = Lock()  # trainings report from threads

    def tell(event: Event) -> None:
        # A training that is asked to stop ends early and is taken as it is: `Cancel` must end the process instead.
        if event.progress:
            with one_at_a_time, suppress(KeyboardInterrupt):
                progress(f"checking {claim}: {event.progress}")

    try:
        with folder_lock(folder, check):  # else figures of one check come beside the record of another
            done = reproduce(claim, out=folder, rerun=True, watch=tell)
    except InUseError:
        raise ValueError("another window is checking it now; wait until that is done") from None
    record = done.records[0]
    return {"outcome": record.outcome, "error": record.details.get("error")}
