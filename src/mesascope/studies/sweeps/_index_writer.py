"""Enters ended runs into the index, in a thread of its own: the sweep goes on while the database does not answer."""

import threading
import time
from typing import TYPE_CHECKING

from mesascope.records import RecordError

if TYPE_CHECKING:
    from mesascope.records import Store

_EVERY = 1.0  # seconds between attempts


class IndexWriter:
    """Brings the index up to the folders of ended runs, many at a time."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._waiting: set[str] = set()
        self._attempt: _Attempt | None = None
        self._begun = time.monotonic()

    def add(self, run: str) -> None:
        """Enter this run with the next attempt."""
        self._waiting.add(run)

    def write(self) -> None:
        """Begin an attempt, if one is due and the last one has ended; never waits for the database."""
        self._finish(0)
        if self._attempt is None and time.monotonic() - self._begun > _EVERY:
            self._begin()

    def close(self, seconds: float | None = None) -> RecordError | None:
        """Finish the attempt under way, and enter the rest; return why some runs are not in the index.

        Args:
            seconds: how long to wait for each of the two, at most; None to wait until the store gives up.
        """
        error = self._finish(seconds)
        if self._attempt is None and self._waiting:
            self._begin()
            error = self._finish(seconds)
        return error

    def _begin(self) -> None:
        self._begun = time.monotonic()
        if self._waiting:
            attempt = _Attempt(self._store, frozenset(self._waiting))
            attempt.start()  # first: if Ctrl-C falls here, the runs are only entered twice
            self._attempt, self._waiting = attempt, set()

    def _finish(self, seconds: float | None) -> RecordError | None:
        """Wait for the attempt; if it failed, its runs wait for the next one."""
        attempt = self._attempt
        if attempt is None:
            return None
        attempt.join(seconds)
        if attempt.is_alive():
            return None
        self._attempt = None
        if isinstance(attempt.error, RecordError):
            self._waiting |= attempt.runs
            return attempt.error
        if attempt.error is not None:
            raise attempt.error
        return None


class _Attempt(threading.Thread):
    """One attempt; the process can end before it has ended."""

    def __init__(self, store: "Store", runs: frozenset[str]) -> None:
        super().__init__(daemon=True)
        self._store, self.runs = store, runs
        self.error: Exception | None = None

    def run(self) -> None:
        """Write the rows of the runs."""
        try:
            self._store.enter(self.runs)
        except Exception as error:
            self.error = error
