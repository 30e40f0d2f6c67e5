"""The process that computes for the page: does jobs one by one, reports their progress, and can be asked to stop."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from mesascope.core import enable_x64, end_with_parent, keep_programs, one_thread, require_backend
from mesascope.specs import plugin_error, printable, set_default_plugins
from mesascope.studies import SpecError

from ._jobs import PROGRAMS, Report

STOP = "stop"
"""Sent while a job runs that is to stop."""


def serve(jobs: Connection, plugins: tuple[str, ...] = (), niceness: int = 0) -> None:
    """Answer jobs (name, arguments) with ("progress", text[, point]) and one last ("done" | "failed" | "cancelled", …).

    Ends when the other side closes the connection, also when the server was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the connection
    os.setpgid(0, 0)  # what a plugin forks ends together with the process
    end_with_parent(lambda: os.killpg(0, signal.SIGKILL))
    own = os.getpid()
    os.nice(niceness)
    os.environ.update(one_thread())
    keep_programs()
    enable_x64()
    set_default_plugins(plugins)
    from mesascope.core import forget_programs

    from . import _compute as _compute  # what most jobs need, before the first of them comes

    def answer(*words: Any) -> None:
        if os.getpid() != own:  # forked by a plugin: the connection is not its own
            os._exit(1)
        jobs.send(words)

    def progress(text: str, *point: Any) -> None:
        answer("progress", text, *point)
        if jobs.poll():  # `STOP`, or the connection was closed
            raise KeyboardInterrupt

    while True:
        try:
            message = jobs.recv()
        except (EOFError, OSError):
            return
        if message == STOP:  # of a job that has ended
            continue
        name, arguments = message
        try:
            answer(*_outcome(_program(name), arguments, progress))
        except OSError:
            return
        forget_programs()


def _program(name: str) -> Callable[..., Any]:
    program: Callable[..., Any] = getattr(import_module(f"{__package__}.{PROGRAMS[name].module}"), name)
    return program


def _outcome(job: Callable[..., Any], arguments: dict[str, Any], progress: Report) -> tuple[Any, ...]:
    try:
        require_backend()
        return ("done", job(**arguments, progress=progress))
    except KeyboardInterrupt:
        return ("cancelled",)
    except SpecError as error:
        return ("failed", error.what, error.path)
    except MemoryError:
        return ("failed", "out of memory; take a smaller dim", ())
    except OverflowError:
        return ("failed", "numbers leave double precision; take smaller ones, or other units", ())
    except (Exception, SystemExit) as error:  # one failed job, or plugin, must not end the process
        if (told := plugin_error(error)) is not None:
            return ("failed", told, ())
        if isinstance(error, SystemExit):
            raise
        if not isinstance(error, ValueError):
            print(*map(printable, traceback.format_exc().splitlines()), sep="\n", file=sys.stderr)
        return ("failed", " ".join(str(error).split()) or type(error).__name__, ())
