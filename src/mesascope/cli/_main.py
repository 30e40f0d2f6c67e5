"""The entry point: parse, run, and turn every end into an exit status."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn, TextIO

from ._interrupt import delayed_interrupts, interrupted_status, interruptible, was_interrupted
from ._output import BAD_INPUT, DONE, FAILED, INTERRUPTED, TERMINATED, say

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_PATHS = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM)
_LEFT = {
    "reproduce": "; finished claims are kept, and the same command resumes",
    "benchmark answer": "; answers that were written are kept, and the same command resumes",
    "benchmark write": "; the folder is not finished: remove it, or name a new one",
    "sweep": "; runs that have ended are kept, and the same command resumes",
}
"""What an interrupt leaves, by the first words of the command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of `mesascope`.

    Args:
        arguments: the command line without the program's name; by default that of the process.

    Returns:
        The exit status: 0 done and nothing contradicted, 1 a claim contradicted or a run failed, 2 bad input (one line
        on standard error says what, where, and the fix), 130 stopped by Ctrl-C, 143 by SIGTERM. The lab ends with 0 after
        both.
    """
    with interruptible():
        return _ended(list(sys.argv[1:] if arguments is None else arguments))


def _ended(given: list[str]) -> int:
    """Run a command and print why it failed: the exit status."""
    name = "mesascope"
    try:
        if given in (["--version"], ["-V"]):
            from importlib.metadata import version

            print(f"mesascope {version('mesascope')}", flush=True)
            return DONE
        with delayed_interrupts():
            from ._parse import COMMANDS, parse
            from ._plugin import forget_plugins
        if given and given[0] in COMMANDS:
            name = f"mesascope {given[0]}"
        command = parse(given)
        try:
            ended = command.run()
        finally:
            forget_plugins(command)
        return interrupted_status() if ended == INTERRUPTED else ended
    except BrokenPipeError:
        # the reader of the output has closed it, as in `mesascope claims | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except BaseException as error:
        failure, line = _status_of(error, _left_by(given))
        if failure is None or (failure == BAD_INPUT and sys.flags.dev_mode):
            raise  # an internal bug; python -X dev -m mesascope … shows all tracebacks
        say(f"{name}: {line}")
        return failure


def run() -> NoReturn:
    """The process: what `main` does with its arguments, then its exit status.

    After an interrupt the process ends at once: a compilation that was interrupted leaves threads behind, which crash while the
    interpreter shuts down and would change the status. Everything that is kept is on disk by then.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # an ASCII terminal shows \u2026 for …, which is valid in JSON
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    warnings.showwarning = _show_warning
    try:
        with interruptible():  # no second signal comes between the end of the command and that of the process
            status = _ended(sys.argv[1:])
            if status in (INTERRUPTED, TERMINATED):
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                os._exit(status)
    except KeyboardInterrupt:  # before the command began, or after its end
        os._exit(interrupted_status())
    sys.exit(status)


def _open_closed_streams() -> None:
    """Open what the caller has closed (`>&-`) on nothing: a file that is opened later must not become standard output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It takes the lowest free number, which is its own.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open until the end


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning for the user in one line, any other with its place in the source."""
    if category is UserWarning:
        say(f"mesascope: {message}")
    elif sys.stderr is not None:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=sys.stderr)


def _left_by(given: list[str]) -> str:
    """What an interrupt of this command leaves."""
    return next((left for words, left in _LEFT.items() if given[: words.count(" ") + 1] == words.split()), "")


def _status_of(error: BaseException, left: str) -> tuple[int | None, str]:
    """The exit status of an exception and the line to print; None for an internal bug."""
    if was_interrupted(error):
        return interrupted_status(), f"interrupted{left}"
    disk = _disk_error(error)
    specs = sys.modules.get("mesascope.specs")  # without it, neither plugin nor extra is loaded
    if specs is not None and not isinstance(error, MemoryError) and (told := specs.plugin_error(error)):
        return BAD_INPUT, told
    if specs is not None and isinstance(error, specs.MissingExtraError):
        return BAD_INPUT, str(error)
    if isinstance(error, ValueError):
        return (BAD_INPUT if disk is None else FAILED), str(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return FAILED, "out of memory; take a smaller dim, batch, number of samples or model"
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return BAD_INPUT, "the current folder was deleted; change to another one"
    if disk is not None:
        return FAILED, f"the result cannot be written: {disk.strerror}; make room, or write it elsewhere"
    if isinstance(error, OSError) and error.errno in _PATHS and error.filename:
        return BAD_INPUT, f"{error.filename}: {error.strerror}; name another path, or check its permissions"
    return None, ""


def _has_current_folder() -> bool:
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _disk_error(error: BaseException | None) -> OSError | None:
    """The error of a full or failing disk that an exception is, or was raised because of."""
    while error is not None and not (isinstance(error, OSError) and error.errno in _DISK):
        error = error.__cause__
    return error
