"""What processes that compute side by side need."""

import os
import threading
import time
from collections.abc import Callable

_THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_XLA = "--xla_cpu_multi_thread_eigen=false"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_thread() -> dict[str, str]:
    """The environment of a process that computes on one thread.

    The workers share the cores; and a sum over several threads is rounded differently for every number of them.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **dict.fromkeys(_THREADS, "1"),
        "XLA_FLAGS": flags if _XLA in flags else f"{flags} {_XLA}".strip(),
    }


def end_with_parent(end: Callable[[], None]) -> None:
    """Call a function, which ends this process, soon after the parent has ended, also in the middle of compiled code."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        end()

    threading.Thread(target=watch, daemon=True).start()
