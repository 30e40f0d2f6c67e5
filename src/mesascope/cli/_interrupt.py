"""Handling of Ctrl-C: it is never lost, and never mistaken for a result."""

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_AGAIN_AFTER = 0.05  # seconds, after which the code that cannot be interrupted has returned


class Stopped(BaseException):
    """Ctrl-C that no part of a computation may catch: a flow would end early, and a claim be judged by its end."""


@contextmanager
def lasting_interrupts() -> Iterator[None]:
    """Raise an interrupt again if it falls where Python ignores exceptions.

    Such places are finalizers and callbacks of the garbage collector. JAX has one, and runs it so often while it compiles that
    some presses of Ctrl-C would be lost.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt | Stopped):
            before(unraisable)
            return
        timer = threading.Timer(_AGAIN_AFTER, _interrupt)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def stopped_by_interrupts() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C raise `Stopped` instead of `KeyboardInterrupt`, in the main thread.

    Compiled code that calls back into Python turns it into another exception: after a press, any exception counts.

    Yields:
        A function that raises `Stopped` after a press, for code in the block that catches exceptions and goes on.
    """
    pressed: list[object] = []

    def stop(*_: object) -> NoReturn:
        pressed.append(None)
        raise Stopped

    def check() -> None:
        if pressed:
            raise Stopped

    with _handler(stop):
        try:
            yield check
        except Exception as error:
            if pressed:
                raise Stopped from error
            raise


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block: an import that is interrupted leaves broken modules behind."""
    presses: list[object] = []
    with _handler(lambda *_: presses.append(None)):
        yield
    if presses:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _handler(handler: Callable[..., object]) -> Iterator[None]:
    in_main = threading.current_thread() is threading.main_thread()  # no other thread is ever interrupted
    if (
        not in_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # ignored: a background job of a shell
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is an interrupt, or was raised because of one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt | Stopped):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _interrupt() -> None:
    """Interrupt the main thread, even in a system call if the platform allows that."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
