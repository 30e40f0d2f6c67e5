"""A run as a row of the index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mesascope.records._sealed import none_if_damaged

if TYPE_CHECKING:
    from ._folders import RunFolders, State

SHORT = 16  # maximum length of a list that can be searched


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


def differing_settings(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    """For each run, the settings that are not equal in all runs of its kind, by path."""
    specs = [flat(row.spec) for row in rows]
    shared: dict[str, dict[str, Any]] = {}
    for row, spec in zip(rows, specs, strict=True):
        before = shared.get(row.kind, spec)
        shared[row.kind] = {name: one for name, one in before.items() if name in spec and spec[name] == one}
    return [
        {name: one for name, one in spec.items() if name not in shared[row.kind]}
        for row, spec in zip(rows, specs, strict=True)
    ]


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value that is no mapping, by its path. A complex number, `{"re": …, "im": …}`, is one value."""
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

    Raises:
        UnreadableError: the folder cannot be read.
    """
    written = record_time(folders, run)
    record = folders.run(run)
    if record is not None:
        shared = ("id", "kind", "state", "code", "spec", "outcome", "attempts", "started", "ended", "seconds")
        error = None if record.error is None else record.error.replace("\0", "\ufffd")
        row = {name: getattr(record, name) for name in shared}
        return {**row, "brief": brief(record.outcome), "error": error, "written": written}
    planned = none_if_damaged(lambda: folders.planned(run))
    if planned is None:
        return None
    return {
        **{name: getattr(planned, name) for name in ("id", "kind", "code", "spec")},
        **{"state": "planned", "outcome": {}, "brief": {}, "error": None, "attempts": 0},
        **{"started": "", "ended": "", "seconds": None, "written": written},
    }


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


def record_time(folders: RunFolders, run: str) -> int:
    """When the record of a run was written, in nanoseconds; 0 where there is none. Only ever compared for equality."""
    try:
        return os.stat(f"{folders.root}/runs/{run[:2]}/{run}/run.json").st_mtime_ns
    except OSError:
        return 0
