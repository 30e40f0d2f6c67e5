"""Handling of Ctrl-C and SIGTERM: they are never lost, and never mistaken for a result; a second one ends the process."""

import _thread
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import Any, NoReturn

_AGAIN_AFTER = 0.05  # seconds, after which the code that cannot be interrupted has returned
_PATIENCE = 20.0  # seconds for compiled code to return after a signal; queues kill what has not ended half a minute later
_LONGEST = 60.0  # seconds after a signal, until which few commands take to write what they keep
_SAME_SIGNAL = 1.0  # seconds; `timeout` and queues send a signal to the process and again to its group
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Signal handlers and threads change these at any moment: lists, since their methods are atomic and take no lock.
_received: list[int] = []  # the signals that were handled since the command began
_again: list[None] = []  # not empty while an interrupt is to be raised again, which is otherwise raised once
_sent: list[None] = []  # one for every signal that this process has sent to itself, until it is counted


class Stopped(BaseException):
    """An interrupt that no part of a computation may catch: a flow would end early, and a claim be judged by its end."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does; a second signal, a second later or more, ends the process at once.

    Python handles a signal when compiled code returns. A thread ends the process if that takes too long, or at a second signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends_at_once = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ends_at_once:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(reader,), daemon=True).start()
    try:
        with lasting_interrupts(), _handled(_raise), _jax_is_loaded_whole():
            yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()  # ends the thread
        if ends_at_once:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(_: int) -> NoReturn:
    raise KeyboardInterrupt


def _end_in_time(numbers: socket.socket) -> None:
    """End the process at a second signal, or if the first one was not handled in time."""
    first: tuple[float, int] | None = None
    with numbers:
        while True:
            try:
                number = numbers.recv(1)
            except TimeoutError:
                if first is None:
                    continue
                left = first[0] + _LONGEST - time.monotonic()
                if not _received:
                    _end(first[1], f"interrupted; compiled code did not return within {_PATIENCE:g} s")
                if left <= 0:  # it saves much, or code of the user has swallowed the interrupt
                    _tell(
                        f"interrupted {_LONGEST:g} s ago and not ended yet; a second signal ends it at once"
                    )
                numbers.settimeout(left if left > 0 else None)
                continue
            if not number:
                return
            if number[0] not in _SIGNALS:
                continue
            if _sent:
                _sent.pop()
                continue
            now = time.monotonic()
            if first is None:
                first = now, number[0]
                numbers.settimeout(_PATIENCE)
            elif now - first[0] >= _SAME_SIGNAL:
                _end(number[0], "interrupted twice")


def _end(number: int, why: str) -> NoReturn:
    _tell(why)
    os._exit(128 + number)


def _tell(what: str) -> None:
    print(f"mesascope: {what}", file=sys.stderr, flush=True)


def was_interrupted(error: BaseException | None = None) -> bool:
    """Whether a signal has come since the command began, or an exception is an interrupt, or was raised because of one.

    Compiled code that calls back into Python turns an interrupt into another exception.
    """
    return bool(_received) or _is_interrupt(error)


def interrupted_status() -> int:
    """The exit status of an interrupted command, as shells write it: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_received[0] if _received else signal.SIGINT)


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
    """Let interrupts raise `Stopped` instead of `KeyboardInterrupt`, in the main thread.

    Compiled code that calls back into Python turns it into another exception: after a press, any exception counts.

    Yields:
        A function that raises `Stopped` after a press, for code in the block that catches exceptions and goes on.
    """
    pressed: list[int] = []

    def stop(number: int) -> NoReturn:
        pressed.append(number)
        raise Stopped

    def check() -> None:
        if pressed:
            raise Stopped

    with _handled(stop):
        try:
            yield check
        except Exception as error:
            if pressed:
                raise Stopped from error
            raise


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delay interrupts until the end of the block: an import that is interrupted leaves broken modules behind."""
    delayed: list[int] = []
    with _handled(delayed.append):
        yield
    if delayed:
        handler = signal.getsignal(delayed[0])
        if callable(handler):
            _again.append(None)
            handler(delayed[0], None)


@contextmanager
def _jax_is_loaded_whole() -> Iterator[None]:
    """Delay interrupts while jax is imported, whoever imports it: its compiled parts crash where an exception passes them."""
    finder = _WholeJax()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _WholeJax(MetaPathFinder):
    """Finds jax as Python does, and runs it in `delayed_interrupts`."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return the specification of jax; None for every other module."""
        found = PathFinder.find_spec(name, path, target) if name == "jax" else None
        if found is None or found.loader is None:
            return None
        load = found.loader.exec_module

        def whole(module: Any) -> None:
            with delayed_interrupts():
                load(module)

        found.loader.exec_module = whole  # type: ignore[method-assign]
        return found


@contextmanager
def _handled(handle: Callable[[int], object]) -> Iterator[None]:
    """Let a function of its number handle the first signal, in the main thread, which alone is interrupted.

    What was begun because of it, such as a last checkpoint, is not interrupted again. Signals that are ignored stay ignored, as
    Ctrl-C by a background job of a shell.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: was for number in _SIGNALS if callable(was := signal.getsignal(number))}
    if before and not any(getattr(was, "__module__", "") == __name__ for was in before.values()):
        for old in (_received, _again, _sent):  # this is the outermost block
            old.clear()

    def note(number: int, _: object) -> None:
        if not _received or _again:
            _again.clear()
            _received.append(number)
            handle(number)

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def _is_interrupt(error: BaseException | None) -> bool:
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
    number = _received[0] if _received else signal.SIGINT
    _again.append(None)
    _sent.append(None)
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main()
