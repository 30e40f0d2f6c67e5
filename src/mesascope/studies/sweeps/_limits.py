"""What a run may not do: copy its process, and take longer than its time limit."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NoReturn


class TimeLimitError(RuntimeError):
    """A run took longer than the time limit of its sweep."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than the time limit of {seconds:g} s")


@contextmanager
def limited(seconds: float | None, in_driver: bool, record: Callable[[str], None]) -> Iterator[None]:
    """End copies of the process that the block makes by `os.fork`, and the block itself after a time.

    Args:
        seconds: the time limit; None for none.
        in_driver: whether this process is the driver. Then the block is ended by a `TimeLimitError` in the main thread, which
            waits for compiled code to return; in a worker by the end of the process.
        record: called before the process ends, with the lines of code at which the block is.

    Raises:
        TimeLimitError: in the driver.
    """
    process = os.getpid()
    with ExitStack() as undone:
        if seconds is not None and in_driver:
            _raise_after(seconds, undone)
        elif seconds is not None:
            _end_after(seconds, record, undone)
        try:
            yield
        finally:
            if os.getpid() != process:
                os._exit(1)  # the copy would record the run and go on, beside the process itself


def _raise_after(seconds: float, undone: ExitStack) -> None:
    """Raise a `TimeLimitError` in this thread, if it is the main one."""
    if threading.current_thread() is not threading.main_thread():
        return

    def stop(*_: object) -> NoReturn:
        raise TimeLimitError(seconds)

    undone.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, stop))
    undone.callback(signal.setitimer, signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _end_after(seconds: float, record: Callable[[str], None], undone: ExitStack) -> None:
    """End the process, from another thread."""
    begun_in = threading.get_ident()

    def end() -> None:
        with suppress(Exception):
            record("".join(traceback.format_stack(sys._current_frames()[begun_in])))
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    undone.callback(timer.cancel)
    timer.start()
