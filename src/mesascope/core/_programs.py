"""How many compiled programs a process may keep."""

import ctypes
from contextlib import suppress
from pathlib import Path

_MAPPINGS = Path("/proc/self/maps")
_MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")
_SHARE = 0.3
"""Of the mappings that the system grants: one computation more must fit beside what is kept."""


def forget_programs() -> bool:
    """Let JAX forget its compiled programs, if they near the memory mappings that the system grants a process.

    Linux grants a process 65 530 mappings, a compiled program takes several, and JAX keeps every program: a process
    that computes one thing after another would be aborted by the compiler ("Unable to allocate section memory") after
    some hundred of them. What is forgotten is compiled again when it is used again, and its memory goes back to the
    system. Call it between computations.

    Returns:
        Whether programs were forgotten; False where the system does not tell.
    """
    try:
        most = int(_MOST_MAPPINGS.read_text())
        with _MAPPINGS.open("rb") as mappings:
            many = sum(1 for _ in mappings) > _SHARE * most
    except (OSError, ValueError):  # not Linux
        return False
    if many:
        import jax

        jax.clear_caches()
        _give_back_memory()
    return many


def _give_back_memory() -> None:
    """Let the C library return what was freed: glibc keeps what lies below anything still in use, gigabytes in the end."""
    with suppress(OSError, AttributeError):  # a C library without this function
        ctypes.CDLL(None).malloc_trim(0)
