"""What a worker process runs: one task at a time, in 64 bit, on one thread of its own."""

import os
import sys
from collections.abc import Sequence

from ._execute import Ended
from ._together import execute_together

_THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_XLA = "--xla_cpu_multi_thread_eigen=false"


def work(
    root: str, runs: Sequence[str], search: Sequence[str] = (), driver: str = "", batch: int = 1
) -> tuple[Ended, ...]:
    """As `execute_together`, in a process that belongs to the sweep."""
    compute_alone()
    import dask

    # xarray would ask Dask's scheduler for a lock on every file that it writes: 15 ms a run
    with dask.config.set(scheduler="synchronous"):
        return execute_together(root, runs, batch, search=search, driver=driver)


def compute_alone() -> None:
    """Compute in 64 bit and, unless JAX has started, on one thread."""
    if "jax" not in sys.modules:
        os.environ.update(alone())
    import jax

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # defined at run time
        jax.config.update("jax_enable_x64", True)


def alone() -> dict[str, str]:
    """The environment of a process that computes on one thread.

    The processes share out the cores; and sums that are split among threads are rounded otherwise for every number of them.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **dict.fromkeys(_THREADS, "1"),
        "XLA_FLAGS": flags if _XLA in flags else f"{flags} {_XLA}".strip(),
    }
