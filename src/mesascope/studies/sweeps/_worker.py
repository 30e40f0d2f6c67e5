"""The worker process: one task at a time, in 64 bit, on one thread."""

import os
import signal
import sys
from collections.abc import Sequence

from mesascope.core import enable_x64, one_thread, require_backend

from ._execute import End, Request
from ._together import execute_together


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the driver: a terminal sends it to every process. Dask calls this when a worker of ours starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def work(root: str, runs: Sequence[str], request: Request) -> tuple[End, ...]:
    """As `execute_together`, in a worker process."""
    compute_alone()
    import dask

    # xarray would ask Dask's scheduler for a lock on every file that it writes: 15 ms a run
    with dask.config.set(scheduler="synchronous"):
        return execute_together(root, runs, request)


def compute_alone() -> None:
    """Compute in 64 bit and, unless JAX has started, on one thread.

    Raises:
        BackendError: JAX cannot compute here.
    """
    if "jax" not in sys.modules:
        os.environ.update(one_thread())
    import jax

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # defined at run time
        enable_x64()
    require_backend()
