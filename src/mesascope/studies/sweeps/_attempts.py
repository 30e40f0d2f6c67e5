"""When a run was begun, and by which process: one line for each attempt, in the folder of the run.

The line stays when its process is killed, so that it is known afterwards which run the process was computing.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mesascope.records import ATTEMPTS, RecordError, checkpoint_files, parse_json, read_bytes, share

_TEXTS = ("host", "driver", "begun", "at", "left", "why")
_FIELDS = {"pid": int, "alone": bool, "batch": int, **dict.fromkeys(_TEXTS, str)}


def begin_attempt(folder: Path, driver: str = "", in_driver: bool = False, batch: int = 1) -> int:
    """Write down that an attempt begins now, in this process; return the number of attempts.

    Args:
        folder: of the run.
        driver: for which driver.
        in_driver: whether this process is the driver, so that the sweep ends if it dies.
        batch: how many runs are computed together.

    Raises:
        RecordError: it cannot be written.
    """
    here = {"pid": os.getpid(), "host": os.uname().nodename, "driver": driver, "alone": in_driver}
    _write(folder, {**here, "batch": batch, "begun": _now(), "at": _checkpoint(folder)})
    return attempts(folder)


def abandon_attempt(folder: Path, why: str | None = None) -> None:
    """Write down that the last attempt ended without a record, while its process lives on.

    Args:
        folder: of the run.
        why: the reason why it could not be computed together with other runs, if that is why it ended.

    Raises:
        RecordError: it cannot be written.
    """
    _write(folder, {"left": _now()} if why is None else {"left": _now(), "why": why})


def attempts(folder: Path) -> int:
    """Return how many attempts were begun."""
    return len(_read(folder))


def last_driver(folder: Path) -> str:
    """Return the driver of the last attempt."""
    found = _read(folder)
    return str(found[-1].get("driver", "")) if found else ""


def why_unbatched(folder: Path, driver: str) -> str | None:
    """Return why this driver's last attempt together with other runs failed; None if there was none, or it went well."""
    together = [one for one in _read(folder) if one.get("batch", 1) > 1 and one.get("driver") == driver]
    return together[-1].get("why") if together else None


def has_advanced(folder: Path) -> bool:
    """Whether there is a checkpoint that was not there when the last attempt began."""
    found = _read(folder)
    return bool(found) and found[-1].get("at", "") != _checkpoint(folder)


def driver_deaths(folder: Path, recorded: int) -> int:
    """Return how many drivers in a row died while they computed this run, without a new checkpoint between them.

    Attempts together with other runs do not count: any of these may have killed the driver.

    Args:
        folder: of the run, which is not being computed now.
        recorded: attempts that its record knows of.
    """
    here, found = _checkpoint(folder), 0
    for attempt in reversed(_read(folder)[recorded:]):
        if not attempt.get("alone") or attempt.get("at", "") != here:
            break
        found += not attempt.get("left") and attempt.get("batch", 1) == 1
    return found


def _read(folder: Path) -> list[dict[str, Any]]:
    """All attempts, each with what was written when it was abandoned."""
    try:
        lines = read_bytes(folder / ATTEMPTS).splitlines()
    except OSError:
        return []
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            entry = parse_json(line)
        except ValueError:  # cut short by a full disk, or damaged
            entry = {}
        entry = _typed(entry) if isinstance(entry, dict) else {}
        if "left" in entry and found:
            found[-1] |= entry
        else:
            found.append(entry)
    return found


def _typed(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entry that are of their type."""
    return {name: entry[name] for name, kind in _FIELDS.items() if type(entry.get(name)) is kind}


def _checkpoint(folder: Path) -> str:
    """The last checkpoint of a training; "" if there is none."""
    return max((file.name for file in checkpoint_files(folder / "checkpoint").values()), default="")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _write(folder: Path, line: dict[str, Any]) -> None:
    try:
        # O_NONBLOCK: a named pipe in its place is an error, and not waited for
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(folder / ATTEMPTS, flags, 0o666)
        try:
            share(folder / ATTEMPTS)
            os.write(descriptor, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RecordError(
            f"cannot write {folder / ATTEMPTS}: {error.strerror}; make room, or remove it if it is not a file"
        ) from error
