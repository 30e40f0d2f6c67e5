"""Ended runs on their way into the index, beside the sweep: a database that hangs keeps nobody from computing."""

import threading
import time
from typing import TYPE_CHECKING

from mesascope.records import RecordError

if TYPE_CHECKING:
    from mesascope.records import Store

_EVERY = 1.0  # seconds between attempts


class Entering:
    """Brings the index up to the folders of ended runs, many at a time and in a thread of its own."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._waiting: set[str] = set()
        self._attempt: _Attempt | None = None
        self._begun = time.monotonic()

    def add(self, run: str) -> None:
        """Enter this run, too."""
        self._waiting.add(run)

    def go_on(self) -> None:
        """Begin an attempt, if one is due and the last one has ended; never waits for the database."""
        self._settle(0)
        if self._attempt is None and time.monotonic() - self._begun > _EVERY:
            self._begin()

    def end(self, seconds: float | None = None) -> RecordError | None:
        """Wait for what is under way, and enter the rest; return why not all is in the index.

        Args:
            seconds: how long to wait, at most, for either of them; None to wait until the database is given up.
        """
        error = self._settle(seconds)
        if self._attempt is None and self._waiting:
            self._begin()
            error = self._settle(seconds)
        return error

    def _begin(self) -> None:
        self._begun = time.monotonic()
        if self._waiting:
            attempt = _Attempt(self._store, frozenset(self._waiting))
            attempt.start()  # first: cut by Ctrl-C here, the runs would only be entered twice
            self._attempt, self._waiting = attempt, set()

    def _settle(self, seconds: float | None) -> RecordError | None:
        """Wait for the attempt; runs of one that failed wait for the next, for the database may come back."""
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
    """One attempt; a process that ends does not wait for it."""

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
