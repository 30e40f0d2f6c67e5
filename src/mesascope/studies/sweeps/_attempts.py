"""When a run was begun, and by whom: one line an attempt, in the folder of the run.

A line stays when the process that wrote it is killed; so it is known afterwards which run the process was computing.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from mesascope.records import RecordError

_FILE = "attempts.jsonl"


def begin_attempt(folder: Path, driver: str = "") -> int:
    """Write down that an attempt begins here and now, for this driver; return how many there are.

    Raises:
        RecordError: it cannot be written.
    """
    line = {
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "driver": driver,
        "begun": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    try:
        descriptor = os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RecordError(f"cannot write {folder / _FILE}: {error.strerror}; make room") from error
    return attempts(folder)


def attempts(folder: Path) -> int:
    """How many attempts were begun."""
    try:
        with open(folder / _FILE, "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def last_driver(folder: Path) -> str:
    """For whom the last attempt was begun."""
    try:
        return str(json.loads((folder / _FILE).read_bytes().splitlines()[-1])["driver"])
    except (OSError, ValueError, IndexError, KeyError):  # none, or torn by a full disk
        return ""
