"""The output of every command: one JSON object, lines for people, one line for an error, a bar of progress."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from ._interrupt import delayed_interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from mesascope.core import Progress

DONE, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit statuses: done and nothing contradicted; a claim contradicted, a run failed or a disk is full; bad input; stopped by
Ctrl-C; stopped by SIGTERM, which `main` puts in the place of INTERRUPTED."""

_WIDTH = 80
_SILENCE = 60.0  # seconds between two lines of progress in a log
_CONTROLS = re.compile("[\x7f-\x9f]")  # JSON escapes only those below


class InputError(ValueError):
    """Bad input of the user; the message says what, where, and the fix."""


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Read or compute the specification of a file: errors begin with its name, and plugins print to standard error."""
    try:
        with prints_to_stderr():
            yield
    except ValueError as error:
        from mesascope.core import BackendError

        if (refused := _refused_setting(error)) is not None:
            raise InputError(f"{refused}; correct or unset the variable of the environment") from error
        if getattr(error, "file", None) or isinstance(error, BackendError):
            raise
        raise InputError(f"{'standard input' if name == '-' else name}: {error}") from error


def _refused_setting(error: ValueError) -> str | None:
    """Why JAX refuses a variable of the environment, at its import, if that is why `error` was raised."""
    if "jax" in sys.modules or not any(name.startswith("JAX_") for name in os.environ):
        return None
    half = any(name.startswith("jax.") for name in sys.modules)  # from the import that `error` tells of
    try:
        import jax as jax
    except ValueError as refused:
        return str(refused)
    except Exception:
        if not half:
            raise
        return str(getattr(error, "what", error))
    return None


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send the output of code of the user to standard error: standard output is for the result."""
    if sys.stdout is None:  # closed: its descriptor may belong to another file
        yield
        return
    sys.stdout.flush()
    saved, process = os.dup(1), os.getpid()
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno() if sys.stderr is None else 2, 1)
    try:
        with redirect_stdout(sys.stderr or io.StringIO()):
            yield
    finally:
        if os.getpid() != process:
            os._exit(FAILED)  # a copy that the code made by `os.fork` would print a result of its own
        os.dup2(saved, 1)
        os.close(saved)


def print_json(result: Any) -> None:
    """Print the one JSON object of a command; NaN and infinities become the strings "nan", "inf", "-inf"."""
    from mesascope.records import plain

    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(plain(result), ensure_ascii=not utf8, allow_nan=False)
    print(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def say(text: str) -> None:
    """Print a text to standard error, as one line."""
    if sys.stderr is None:  # closed
        return
    if "@" in text or "://" in text:  # perhaps the address of a database or a server
        from mesascope.records import without_passwords

        text = without_passwords(text)
    print(printable(text), file=sys.stderr, flush=True)


def printable(text: str, longest: int = sys.maxsize) -> str:
    """A text from a file or another process as one line that is safe to print, shortened to `longest` characters."""
    from mesascope.specs import (
        printable,  # not before it is needed: help and errors of the command line come at once
    )

    return printable(text, longest)


def results() -> "Console":
    """The console for results: standard output, 80 columns wide unless it is a terminal."""
    console = _console()
    return console if console.is_terminal else _console(width=_WIDTH)


def _console(**options: Any) -> "Console":
    """A console that escapes control characters in whatever it prints: names from files hold some."""
    from rich.console import Console
    from rich.segment import Segment

    from mesascope.specs import escaped

    class Escaping(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                safe = text if control else "\n".join(map(escaped, text.split("\n")))
                yield Segment(safe, style, control)

    return Escaping(highlight=False, **options)


def print_headline(console: "Console", word: str, style: str, text: str) -> None:
    """Print a word in its colour and the text after it, wrapped together."""
    from rich.text import Text

    console.print(Text.assemble((word, style), text))


def progress() -> "Console":
    """The console for progress: standard error, and quiet unless that is a terminal."""
    return _console(stderr=True, quiet=sys.stderr is None or not sys.stderr.isatty())


@contextmanager
def progress_bar(console: "Console") -> "Iterator[Callable[[Progress], None]]":
    """Yield a function that shows progress as a bar on a console of `progress`, or if that is quiet a line a minute."""
    if console.quiet:
        yield _a_line_a_minute()
        return
    from mesascope.core import ProgressBar

    with ProgressBar(console, transient=True) as bar:
        yield bar


def _a_line_a_minute() -> "Callable[[Progress], None]":
    """For a log: what ends within a minute says nothing."""
    last = monotonic()

    def show(now: "Progress") -> None:
        nonlocal last
        if monotonic() - last >= _SILENCE:
            last = monotonic()
            say(now.describe())

    return show


def compute_in_64_bits() -> None:
    """Start JAX in 64-bit precision, and keep compiled programs: the library leaves both to its user, here the command.

    Raises:
        BackendError: JAX cannot compute here.
    """
    with delayed_interrupts():
        from mesascope.core import enable_x64, keep_programs, require_backend

        keep_programs()
        enable_x64()
        require_backend()


def compute_on_every_core() -> None:
    """Give JAX every core as a device, before it starts, unless the user has set their number."""
    with delayed_interrupts():
        import jax

        from mesascope.core import cores

    unset = jax.config.jax_num_cpu_devices < 0  # type: ignore[attr-defined]  # defined at run time
    if unset and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with suppress(RuntimeError):  # JAX has started, in a program that calls the command as a function
            jax.config.update("jax_num_cpu_devices", cores())


def print_matrices(console: "Console", matrices: dict[str, list[list[float]]]) -> None:
    """Print matrices, each below its name."""
    for name, matrix in matrices.items():
        console.print(name, style="bold")
        for line in matrix_lines(matrix):
            console.print(line, markup=False)


def matrix_lines(matrix: list[list[float]]) -> list[str]:
    """Write a matrix in aligned columns, if it fits into 80 characters; else say how to see it."""
    cells = [[f"{x:.5g}" for x in row] for row in matrix]
    width = max(len(cell) for row in cells for cell in row) + 2
    if width * len(cells[0]) > _WIDTH:
        return ["  too wide to show; --json prints every entry"]
    return ["".join(cell.rjust(width) for cell in row) for row in cells]
