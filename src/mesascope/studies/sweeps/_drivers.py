"""Who drives a study at the moment: one small file for each, in the store."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mesascope.records import atomic_path

_FOLDER = "drivers"
_BEAT = 15.0  # seconds: a driver that has no news says so
_SILENT = 120  # seconds: a driver of another machine that says nothing for so long, by our clock, is gone
WRITE_EVERY = 2.0
"""Seconds between what a driver says of itself."""


class Driver(BaseModel):
    """What a driver says of itself.

    Attributes:
        study: its name.
        host, pid: where it runs.
        scheduler: as it was asked for.
        dashboard: the address of Dask's page; None in process.
        total: runs of the study.
        done, failed, reused: how many have ended.
        per_minute: how many it ends.
        seconds_left: until all have ended; None where it cannot be told.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: str
    host: str
    pid: int
    scheduler: str
    dashboard: str | None
    total: int
    done: int = 0
    failed: int = 0
    reused: int = 0
    per_minute: float = 0.0
    seconds_left: float | None = None


def drivers(root: Path, study: str) -> list[Driver]:
    """Those that drive a study now; files of drivers that were killed are removed."""
    found = []
    for file in sorted((root / _FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, ValidationError):
            driver = Driver.model_validate(json.loads(file.read_text(encoding="utf-8")))
            if _is_gone(driver, file):
                file.unlink(missing_ok=True)
            elif driver.study == study:
                found.append(driver)
    return found


def _is_gone(driver: Driver, file: Path) -> bool:
    if driver.host != _host():
        return time.time() - file.stat().st_mtime > _SILENT
    try:
        os.kill(driver.pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _host() -> str:
    return "".join(
        c if c.isalnum() else "_" for c in os.uname().nodename
    )  # whole: nodes differ in their last letters


class Announcement:
    """What this driver says of itself, in its file: what is new, and now and then that it is still there."""

    def __init__(self, root: Path, driver: Driver) -> None:
        self._file = root / _FOLDER / f"{driver.host}-{driver.pid}-{driver.study}.json"
        self._driver, self._said = driver, -WRITE_EVERY
        self._writing, self._over = threading.Lock(), threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()

    def say(self, **news: Any) -> None:
        """Write it down, if the last time is long enough ago."""
        now = time.monotonic()
        self._driver = self._driver.model_copy(update=news)
        if now - self._said >= WRITE_EVERY:
            self._said = now
            self._write()

    def end(self) -> None:
        """Remove the file."""
        self._over.set()
        with self._writing:
            self._file.unlink(missing_ok=True)

    def _beat(self) -> None:
        """A run that is computed in this process may take hours, in which nothing else is said."""
        while not self._over.wait(_BEAT):
            self._write()

    def _write(self) -> None:
        with self._writing:
            if self._over.is_set():
                return
            # a full disk: others are not told
            with suppress(ValueError, OSError), atomic_path(self._file) as temporary:
                temporary.write_text(self._driver.model_dump_json(), encoding="utf-8")


@contextmanager
def announced(
    root: Path, study: str, scheduler: str, dashboard: str | None, total: int
) -> Iterator[Announcement]:
    """Say that this process drives a study, while the block runs."""
    driver = Driver(
        study=study, host=_host(), pid=os.getpid(), scheduler=scheduler, dashboard=dashboard, total=total
    )
    announcement = Announcement(root, driver)
    announcement.say()
    try:
        yield announcement
    finally:
        announcement.end()
