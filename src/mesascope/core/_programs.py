"""A limit on the number of compiled programs that a process keeps."""

import ctypes
from contextlib import suppress
from pathlib import Path

_MAPPINGS = Path("/proc/self/maps")
_MAX_MAPPINGS = Path("/proc/sys/vm/max_map_count")
_SHARE = 0.3
"""The fraction of the allowed mappings that may be used before the next computation, which needs more."""


def forget_programs() -> bool:
    """Clear JAX's cache of compiled programs if they use too many memory mappings.

    Linux allows a process 65 530 mappings, a compiled program uses several, and JAX keeps every program: without this, the
    compiler aborts ("Unable to allocate section memory") after some hundred different computations. Cleared programs are
    compiled again at their next use, and their memory is returned to the system. Call it between computations.

    Returns:
        Whether the cache was cleared; False on systems other than Linux.
    """
    try:
        allowed = int(_MAX_MAPPINGS.read_text())
        with _MAPPINGS.open("rb") as mappings:
            too_many = sum(1 for _ in mappings) > _SHARE * allowed
    except (OSError, ValueError):  # not Linux
        return False
    if too_many:
        import jax

        jax.clear_caches()
        _return_memory()
    return too_many


def _return_memory() -> None:
    """Return freed memory to the system: glibc alone would keep gigabytes below blocks that are still in use."""
    with suppress(OSError, AttributeError):  # a C library without this function
        ctypes.CDLL(None).malloc_trim(0)
