"""How far a study is: what its drivers announce, in one small file each, and what the store counts."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mesascope.records import atomic_path, parse_json, read_json_text

if TYPE_CHECKING:
    from mesascope.records import Store

_FOLDER = "drivers"
_ANNOUNCE_AGAIN = 15.0  # seconds after which a driver without news writes its file again
_SILENT = 120  # seconds after which a driver of another machine counts as ended, by the clock of this machine
_WRITE_EVERY = 2.0  # seconds between two announcements of progress


class Failure(BaseModel):
    """Runs that failed, or could not be computed together, for one reason.

    Attributes:
        error: the reason.
        count: how many runs.
        run: the id of one of them.
    """

    model_config = ConfigDict(frozen=True)

    error: str
    count: int
    run: str


def grouped(errors: Mapping[str, str]) -> tuple[Failure, ...]:
    """The errors of runs by id, equal ones together, the most frequent first."""
    first: dict[str, str] = {}
    for run, error in errors.items():
        first.setdefault(error, run)
    counted = Counter(errors.values()).most_common()
    return tuple(Failure(error=error, count=count, run=first[error]) for error, count in counted)


class Driver(BaseModel):
    """A process that sweeps a study, as it announces itself.

    Attributes:
        study: its name.
        host, pid: the machine and the process.
        scheduler: as it was given.
        dashboard: the address of Dask's page; None in process.
        total: runs of the study.
        done, failed, reused: how many have ended.
        per_minute: how many end in a minute.
        seconds_left: until all have ended; None while it is unknown.
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


class StudyStatus(BaseModel):
    """How far a study is.

    Attributes:
        study: its name.
        total: its runs, without those that were removed from the store.
        planned, running, done, failed, unreadable: how many have each status.
        per_minute: how many end in a minute, by its drivers; 0 without a driver.
        seconds_left: until all have ended; None while it is unknown, or without a driver.
        failures: why runs failed or cannot be read, equal reasons together, the most frequent first.
        drivers: the processes that sweep it now.
    """

    model_config = ConfigDict(frozen=True)

    study: str
    total: int
    planned: int
    running: int
    done: int
    failed: int
    unreadable: int
    per_minute: float
    seconds_left: float | None
    failures: tuple[Failure, ...]
    drivers: tuple[Driver, ...]


def study_status(store: "Store", study: str) -> StudyStatus:
    """Return how far a study is, whichever processes sweep it.

    Raises:
        RecordError: there is none of this name.
    """
    store.refresh()
    runs = f"study={study}"
    store.confirm([runs])
    total = store.count([runs])  # from the index: the file of a large study takes seconds to read
    if not total:
        store.folders.study(study)  # refuses an unknown name
    failed = store.rows([runs, "status=failed"])
    unreadable = store.unreadable([runs])
    done, running = (store.count([runs, f"status={status}"]) for status in ("done", "running"))
    active = drivers(store.folders.root, study)
    rate = sum(driver.per_minute for driver in active)
    left = total - done - len(failed) - len(unreadable)
    return StudyStatus(
        study=study,
        total=total,
        planned=max(left - running, 0),
        running=running,
        done=done,
        failed=len(failed),
        unreadable=len(unreadable),
        per_minute=rate,
        seconds_left=60 * left / rate if rate else None,
        failures=grouped({row.id: row.error or "" for row in [*failed, *unreadable]}),
        drivers=tuple(active),
    )


def drivers(root: Path, study: str) -> list[Driver]:
    """The processes that sweep a study now; files of drivers that were killed are removed."""
    found = []
    for file in sorted((root / _FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, ValidationError):
            driver = Driver.model_validate(parse_json(read_json_text(file)))
            if _has_ended(driver, file):
                file.unlink(missing_ok=True)
            elif driver.study == study:
                found.append(driver)
    return found


def _has_ended(driver: Driver, file: Path) -> bool:
    if driver.host != _host():
        return abs(time.time() - file.stat().st_mtime) > _SILENT  # in the future: the clock was set back
    try:
        os.kill(driver.pid, 0)  # signal 0 changes nothing
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _host() -> str:
    """The whole name: nodes of a cluster differ in its last letters."""
    return "".join(c if c.isalnum() else "_" for c in os.uname().nodename)


class Announcement:
    """The file of this driver, which is written when there is news, and otherwise every few seconds."""

    def __init__(self, root: Path, driver: Driver) -> None:
        self._file = root / _FOLDER / f"{driver.host}-{driver.pid}-{driver.study}.json"
        self._driver, self._written = driver, -_WRITE_EVERY
        self._writing, self._over = threading.Lock(), threading.Event()
        threading.Thread(target=self._repeat, daemon=True).start()

    def update(self, **news: Any) -> None:
        """Write the news, if the last time is long enough ago."""
        now = time.monotonic()
        self._driver = self._driver.model_copy(update=news)
        if now - self._written >= _WRITE_EVERY:
            self._written = now
            self._write()

    def end(self) -> None:
        """Remove the file."""
        self._over.set()
        with self._writing:
            self._file.unlink(missing_ok=True)

    def _repeat(self) -> None:
        """Write again and again: a run that is computed in this process may take hours without news."""
        while not self._over.wait(_ANNOUNCE_AGAIN):
            self._write()

    def _write(self) -> None:
        with self._writing:
            if self._over.is_set():
                return
            # on a full disk nothing is announced
            with suppress(ValueError, OSError), atomic_path(self._file) as temporary:
                temporary.write_text(self._driver.model_dump_json(), encoding="utf-8")


@contextmanager
def announced(
    root: Path, study: str, scheduler: str, dashboard: str | None, total: int
) -> Iterator[Announcement]:
    """Announce that this process sweeps a study, while the block runs."""
    driver = Driver(
        study=study, host=_host(), pid=os.getpid(), scheduler=scheduler, dashboard=dashboard, total=total
    )
    announcement = Announcement(root, driver)
    announcement.update()
    try:
        yield announcement
    finally:
        announcement.end()
