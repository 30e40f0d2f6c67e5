"""The bar of a computation that is called without `progress`, where a user waits for it."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from ._progress import Progress, ProgressBar, open_bars

P = ParamSpec("P")
R = TypeVar("R")
_PATIENCE = 2.0  # seconds without a bar: most computations have ended by then
_BEGIN = Progress(0, stage="compiling, and taking the first steps")


def shows_progress(compute: Callable[P, R]) -> Callable[P, R]:
    """Let a function with a parameter `progress` show a bar if none is given, once it has taken two seconds.

    A bar is shown in the main thread of a terminal or notebook only, and one at a time: what a computation computes on its way
    shows none.
    """

    @wraps(compute)
    def shown(*args: P.args, **settings: P.kwargs) -> R:
        if settings.get("progress") is not None or not _is_watched():
            return compute(*args, **settings)
        with _LateBar() as settings["progress"]:
            return compute(*args, **settings)

    return shown


def _is_watched() -> bool:
    return (
        not open_bars
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
        and sys.stderr is not None
        and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    )


class _LateBar:
    """A bar that appears only if there is still something to wait for; a thread shows it, since compilation reports nothing."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None
        self._last, self._ended = _BEGIN, False
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        open_bars.append(self)
        self._timer.start()
        return self

    def __exit__(self, *error: Any) -> None:
        open_bars.remove(self)
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.__exit__(*error)

    def __call__(self, now: Progress) -> None:
        with self._lock:
            self._last = now
            if self._bar is not None:
                self._bar(now)

    def _show(self) -> None:
        with self._lock:
            if not self._ended:
                self._bar = ProgressBar(transient=True).__enter__()
                self._bar(self._last)
