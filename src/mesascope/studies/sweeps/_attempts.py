"""When a run was begun, and by whom: one line an attempt, in the folder of the run.

A line stays when the process that wrote it is killed; so it is known afterwards which run the process was computing.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mesascope.records import RecordError, share

_FILE = "attempts.jsonl"


def begin_attempt(folder: Path, driver: str = "", alone: bool = False, batch: int = 1) -> int:
    """Write down that an attempt begins here and now; return how many there are.

    Args:
        folder: of the run.
        driver: for whom.
        alone: whether the process is the driver's own, so that it ends the sweep if it dies.
        batch: how many runs are computed together.

    Raises:
        RecordError: it cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    me = {"pid": os.getpid(), "host": os.uname().nodename, "driver": driver, "alone": alone, "batch": batch}
    _write(folder, {**me, "begun": now, "at": _checkpoint(folder)})
    return attempts(folder)


def leave_attempt(folder: Path, why: str | None = None) -> None:
    """Write down that the last attempt was given up without a record: it has not killed its process.

    Args:
        folder: of the run.
        why: what hindered it from being computed together with others, if that is what it was.

    Raises:
        RecordError: it cannot be written.
    """
    told = {"left": datetime.now(UTC).isoformat(timespec="milliseconds")}
    _write(folder, told if why is None else {**told, "why": why})


def attempts(folder: Path) -> int:
    """How many attempts were begun."""
    return len(_begun(folder))


def last_driver(folder: Path) -> str:
    """For whom the last attempt was begun."""
    begun = _begun(folder)
    return str(begun[-1].get("driver", "")) if begun else ""


def why_apart(folder: Path, driver: str) -> str | None:
    """What hindered this driver's last attempt together with other runs; None where nothing did, or there was none."""
    together = [one for one in _begun(folder) if one.get("batch", 1) > 1 and one.get("driver") == driver]
    return together[-1].get("why") if together else None


def has_advanced(folder: Path) -> bool:
    """Whether there is a checkpoint that was not there when the last attempt began."""
    begun = _begun(folder)
    return bool(begun) and begun[-1].get("at", "") != _checkpoint(folder)


def deaths(folder: Path, recorded: int) -> int:
    """How many drivers in a row this run has killed, or was killed with, while it came no further.

    An attempt together with other runs says nothing of any of them, and does not count.

    Args:
        folder: of the run, which nobody computes now.
        recorded: attempts that its record knows of.
    """
    here, found = _checkpoint(folder), 0
    for line in reversed(_begun(folder)[recorded:]):
        if not line.get("alone") or line.get("at", "") != here:
            break
        found += not line.get("left") and line.get("batch", 1) == 1
    return found


def _begun(folder: Path) -> list[dict[str, Any]]:
    """What is written of every attempt, and of its being left."""
    try:
        lines = (folder / _FILE).read_bytes().splitlines()
    except OSError:
        return []
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:  # torn by a full disk
            told = {}
        if isinstance(told, dict) and "left" in told and found:
            found[-1] |= told
        else:
            found.append(told if isinstance(told, dict) else {})
    return found


def _checkpoint(folder: Path) -> str:
    """The last checkpoint of a training; "" where there is none."""
    return max((file.name for file in (folder / "checkpoint").glob("step-*.checkpoint")), default="")


def _write(folder: Path, line: dict[str, Any]) -> None:
    try:
        descriptor = os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            share(folder / _FILE)
            os.write(descriptor, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RecordError(f"cannot write {folder / _FILE}: {error.strerror}; make room") from error
