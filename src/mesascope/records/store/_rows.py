"""A run as a row of the index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from mesascope.records._files import RecordError, UnreadableError

from ._paths import LARGEST_INTEGER, RECORD, TRAJECTORY

if TYPE_CHECKING:
    from ._folders import RunFolders, Status

SHORT = 16  # maximum length of a list that can be searched
_NOT_SHOWN = {"brief", "written", "outcome_checksum"}


@dataclass(frozen=True)
class RunRow:
    """A run of a store.

    Attributes:
        id: 32 hexadecimal digits.
        kind: flow, train, identify, certify, loss.
        status: planned, running, done, failed or unreadable.
        code: the version of the code that its numbers depend on.
        spec: its specification.
        outcome: what was found; empty before it is done.
        error: why it failed, or why its record cannot be read, in one line; None where neither is so.
        attempts: how many times it was begun; 0 where it has not ended.
        started, ended: UTC times, ISO 8601; empty where it has not ended.
        seconds: duration of the last attempt; None where it has not ended.
    """

    id: str
    kind: str
    status: Status
    code: str
    spec: dict[str, Any]
    outcome: dict[str, Any]
    error: str | None
    attempts: int
    started: str
    ended: str
    seconds: float | None


def differing_settings(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    """For each run, the settings that are not equal in all runs of its kind, by path, such as model.layers.0.rule.kind."""
    specs = [flat(_with_numbers(row.spec)) for row in rows]
    shared: dict[str, dict[str, Any]] = {}
    for row, spec in zip(rows, specs, strict=True):
        before = shared.get(row.kind, spec)
        shared[row.kind] = {name: one for name, one in before.items() if name in spec and spec[name] == one}
    return [
        {name: one for name, one in spec.items() if name not in shared[row.kind]}
        for row, spec in zip(rows, specs, strict=True)
    ]


def _with_numbers(value: Any) -> Any:
    """The value with tables by their number in place of lists of tables."""
    if isinstance(value, Mapping):
        return {name: _with_numbers(one) for name, one in value.items()}
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return {str(number): _with_numbers(one) for number, one in enumerate(value)}
    return value


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value that is not a mapping, by its path. A complex number, `{"re": …, "im": …}`, is one value."""
    return dict(_leaves(value, prefix))


def _leaves(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, one in value.items():
        at = f"{path}.{name}" if path else name
        if isinstance(one, Mapping) and one and set(one) != {"re", "im"}:
            yield from _leaves(one, at)
        else:
            yield at, one


def row_of(folders: RunFolders, run: str) -> dict[str, Any] | None:
    """The row of a run with its outcome, from its folder; None where nothing is planned there.

    Whatever shows a run takes its status from here: `unreadable` where a file of it is there and cannot be read.
    """
    found: dict[str, Any] = {"status": "planned", "outcome": {}, "error": None, "attempts": 0}
    found |= {"started": "", "ended": "", "seconds": None, "written": record_mark(folders, run)}
    found |= {"id": run, "kind": "", "code": "", "spec": {}}
    plan = ("kind", "code", "spec")
    try:
        record = folders.run(run)
        if record is not None:
            found |= {name: getattr(record, name) for name in found.keys() - {"id", "written"}}
        elif folders.is_planned(run):
            planned = folders.planned(run)
            found |= {name: getattr(planned, name) for name in plan}
        else:
            return None
    except RecordError as error:
        with suppress(RecordError):
            planned = folders.planned(run)
            found |= {name: getattr(planned, name) for name in plan}
        # for another user, or another version, the file may be readable: the mark says nothing
        always = isinstance(error, UnreadableError) or not found["written"]
        found |= {
            "status": "unreadable",
            "error": str(error),
            "written": READ_AGAIN if always else found["written"],
        }
    if found["error"] is not None:
        found["error"] = found["error"].replace("\0", "\ufffd")
    return index_row(found)


def index_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a run with what the index adds to it from its outcome."""
    checksum = outcome_checksum(to_json(row["outcome"]))
    return {**row, "brief": brief(row["outcome"]), "outcome_checksum": checksum}


def row_checksum(*values: Any) -> int:
    """The checksum of a row as SQLite holds it."""
    return crc32(ascii(values).encode())


def outcome_checksum(text: str) -> int:
    """The checksum of an outcome as text."""
    return crc32(text.encode())


def to_json(value: Any) -> str:
    """A value as the index keeps it: PostgreSQL has no NUL."""
    return json.dumps(value, allow_nan=False).replace("\\u0000", "\\ufffd")


def run_row(row: Mapping[str, Any], folders: RunFolders) -> RunRow:
    """A row of the index, `running` if it is being computed now."""
    shown = {name: value for name, value in row.items() if name not in _NOT_SHOWN}
    return RunRow(**{**shown, "status": status_now(folders, row["id"], row["status"])})


def status_now(folders: RunFolders, run: str, status: str) -> str:
    """The status of a run: from the index, and for a run that has not ended from the lock in its folder."""
    if status != "planned":
        return status
    # Look for the file of the lock first: of a hundred thousand planned runs few have one.
    lock = f"{folders.root}/runs/{run[:2]}/{run}/.run.lock"
    return "running" if os.access(lock, os.F_OK) and folders.running(run) else status


def brief(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """An outcome without its long lists, for searching."""
    shortened = {
        name: brief(value) if isinstance(value, Mapping) else value for name, value in outcome.items()
    }
    return {
        name: value for name, value in shortened.items() if not isinstance(value, list) or _is_short(value)
    }


def _is_short(values: list[Any]) -> bool:
    return len(values) <= SHORT and not any(isinstance(value, list | Mapping) for value in values)


READ_AGAIN = -1
"""The mark of a run that is read again whenever the store is opened."""


def record_mark(folders: RunFolders, run: str) -> int:
    """Times and sizes of the record of a run and of its arrays, as one number; 0 where there is no record.

    Only ever compared for equality.
    """
    folder = f"{folders.root}/runs/{run[:2]}/{run}"
    record = _mark(f"{folder}/{RECORD}")
    return record and record ^ (_mark(f"{folder}/{TRAJECTORY}") >> 1)


def _mark(path: str) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return (found.st_mtime_ns ^ found.st_size) & LARGEST_INTEGER


def has_changed(folders: RunFolders, run: str, written: int) -> bool:
    """Whether the record of a run is no longer the file that its row in the index was made from."""
    return written not in (READ_AGAIN, record_mark(folders, run))
