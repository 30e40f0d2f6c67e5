"""The process that computes for the page: does jobs one by one, reports their progress, and can be asked to stop."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mesascope.specs import plugin_error, printable, set_default_plugins
from mesascope.studies import SpecError

from ._jobs import Progress

STOP = "stop"
"""Sent while a job runs that is to stop."""


def serve(jobs: Connection, cache: str, plugins: tuple[str, ...] = (), niceness: int = 0) -> None:
    """Answer jobs (name, arguments) with ("progress", text) and one last ("done" | "failed" | "cancelled", …).

    Ends when the other side closes the connection, also when the server was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the connection
    os.setpgid(0, 0)  # what a plugin forks ends together with the process
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    own = os.getpid()
    os.nice(niceness)
    _prepare(cache)
    set_default_plugins(plugins)
    from mesascope.core import forget_programs

    from ._compute import JOBS

    def answer(*words: Any) -> None:
        if os.getpid() != own:  # forked by a plugin: the connection is not its own
            os._exit(1)
        jobs.send(words)

    def progress(text: str) -> None:
        answer("progress", text)
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
            answer(*_outcome(JOBS[name], arguments, progress))
        except OSError:
            return
        forget_programs()


def _end_with(server: int) -> None:
    """End this process and what it has forked soon after the server, also in the middle of a job that hangs."""
    while os.getppid() == server:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _outcome(job: Callable[..., Any], arguments: dict[str, Any], progress: Progress) -> tuple[Any, ...]:
    try:
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


def _prepare(cache: str) -> None:
    """Compute in 64 bits, with a cache of compiled programs that later starts of the lab use.

    Programs with error checks of equinox call Python and cannot be cached; the flow reports errors itself.
    """
    os.environ.setdefault("EQX_ON_ERROR", "off")
    import jax

    jax.config.update("jax_enable_x64", True)
    if cache and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def cache_folder() -> str:
    """Return the folder of compiled programs in the user's cache, or nothing if that cannot be written to.

    No other user may write there: the programs are run.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mesascope" / "programs"
        for own in (folder.parent, folder):
            own.mkdir(parents=True, exist_ok=True)
            if own.stat().st_uid != os.geteuid():
                return ""
            own.chmod(0o700)
    except (OSError, RuntimeError):  # no home
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""
