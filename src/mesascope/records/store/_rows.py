"""A run as the index knows it: one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mesascope.records._files import RecordError

if TYPE_CHECKING:
    from ._folders import RunFolders, State


@dataclass(frozen=True)
class RunRow:
    """A run of a store.

    Attributes:
        id: 32 hexadecimal digits.
        kind: flow, train, identify, certify, loss.
        state: planned, running, done or failed.
        code: the version of the code that its numbers depend on.
        spec: its specification.
        outcome: what was found; empty before it is done.
        error: why it failed, in one line; None where it did not.
        attempts: how many times it was begun; 0 where it has not ended.
        started, ended: UTC times, ISO 8601; empty where it has not ended.
        seconds: duration of the last attempt; None where it has not ended.
    """

    id: str
    kind: str
    state: State
    code: str
    spec: dict[str, Any]
    outcome: dict[str, Any]
    error: str | None
    attempts: int
    started: str
    ended: str
    seconds: float | None


def row_of(folders: RunFolders, run: str) -> dict[str, Any] | None:
    """The row of a run, from its folder; None where nothing is planned there."""
    written = record_time(folders, run)
    record = folders.run(run)
    if record is not None:
        shared = ("id", "kind", "state", "code", "spec", "outcome", "attempts", "started", "ended", "seconds")
        error = None if record.error is None else record.error.replace("\0", "\ufffd")
        return {**{name: getattr(record, name) for name in shared}, "error": error, "written": written}
    try:
        planned = folders.planned(run)
    except RecordError:
        return None
    return {
        **{name: getattr(planned, name) for name in ("id", "kind", "code", "spec")},
        **{"state": "planned", "outcome": {}, "error": None, "attempts": 0},
        **{"started": "", "ended": "", "seconds": None, "written": written},
    }


def record_time(folders: RunFolders, run: str) -> int:
    """When the record of a run was written, in nanoseconds; 0 where there is none. Only ever compared for equality."""
    import os

    try:
        return os.stat(f"{folders.root}/runs/{run[:2]}/{run}/run.json").st_mtime_ns
    except OSError:
        return 0
