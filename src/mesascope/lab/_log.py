"""The log of the server: lines that are safe to print, and no more of them than say something new."""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from mesascope.specs import printable

_MAX_MESSAGE = 1000  # characters of a line
_TOKEN = re.compile(r"(\btoken=)[^&\s'\"]+")
"""The token of the lab in an address, which is not logged."""
_PACKAGE = Path(__file__).parents[1]
_MAX_LINES = 60  # of a traceback; the first and the last of a longer one are shown


def log_printable_lines() -> None:
    """Send every message to standard error, as lines that are safe to print."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableLines())
    handler.addFilter(is_meaningful)
    handler.addFilter(RepeatedErrors())
    logging.basicConfig(handlers=[handler])
    for name in ("engineio.server", "socketio.server"):
        logging.getLogger(name).handlers.clear()  # their own ones print everything once more


class PrintableLines(logging.Formatter):
    """Messages as lines that are safe to print: they hold paths of requests, and whatever a page sends."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return _safe(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        lines = [_safe(line) for line in super().formatException(ei).splitlines()]
        if len(lines) > _MAX_LINES:
            half = _MAX_LINES // 2
            lines[half:-half] = [f"… {len(lines) - 2 * half} more lines"]
        return "\n".join(lines)


def _safe(line: str) -> str:
    return printable(_TOKEN.sub(r"\1…", line), _MAX_MESSAGE)


class RepeatedErrors(logging.Filter):
    """Shows the traceback of an error once, and one line when the error has occurred 2, 4, 8, 16 … times.

    Errors are the same where they have one type and come from one line of one program. A page that sends the same bad event
    again and again thus cannot fill the disk with its tracebacks. An error that never reached our code is one line at once:
    the libraries below found a message that they cannot read.
    """

    def __init__(self) -> None:
        super().__init__()
        self._times: Counter[tuple[type, str, int | None]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is shown; without its traceback if that was shown before."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        frames = traceback.extract_tb(error.__traceback__)
        where = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
        self._times[type(error), *where] += 1
        times = self._times[type(error), *where]
        if times > 1 or not any(map(_is_ours, frames)):
            count = f"{times} times so far, " if times > 1 else ""
            place = f"{where[0]}:{where[1]}" if frames else "never raised"
            record.msg = f"{type(error).__name__}: {error} ({count}{place})"
            record.args, record.exc_info, record.exc_text = None, None, None
        return times & (times - 1) == 0


def _is_ours(frame: traceback.FrameSummary) -> bool:
    """Whether code of mesascope runs in a frame; the guard, through which every message passes, does not count."""
    return Path(frame.filename).is_relative_to(_PACKAGE) and not frame.filename.endswith("_guard.py")


def is_meaningful(record: logging.LogRecord) -> bool:
    """Return whether a message of NiceGUI is about something.

    In Python 3.11 `asyncio.wait_for` ignores a cancellation that comes together with the result. At the end NiceGUI then waits
    for two seconds, cancels again, and names the tasks that were not cancelled: none.
    """
    no_tasks = isinstance(record.args, tuple) and record.args[-1:] == ("",)
    return not (no_tasks and str(record.msg).startswith("Could not cancel"))
