"""A folder of compiled programs, so that a command need not compile again what an earlier one compiled."""

import hashlib
import os
import platform
import warnings
from contextlib import suppress
from pathlib import Path

_MAX_BYTES = 2**30  # of all programs; half of them, the oldest, are then removed


def keep_programs() -> None:
    """Let JAX keep compiled programs in the user's cache, and load them from there. Call it before equinox is imported.

    Nothing is kept where `JAX_COMPILATION_CACHE_DIR` names another folder, or where the cache cannot be written to. Programs
    with error checks of equinox call Python and cannot be kept: the checks are switched off, unless `EQX_ON_ERROR` is set.
    """
    os.environ.setdefault("EQX_ON_ERROR", "off")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or not (folder := program_folder()):
        return
    import jax

    _remove_oldest(Path(folder))
    warnings.filterwarnings(
        "ignore", "Error (reading|writing) persistent compilation cache entry"
    )  # it is compiled again
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def program_folder() -> str:
    """Return the folder of programs for this kind of CPU in the user's cache, or nothing if it cannot be written to.

    No other user may write there: the programs are run.
    """
    try:
        given = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # its specification: a relative path is ignored
        cache = (given if given.is_absolute() else Path.home() / ".cache") / "mesascope"
        folder = cache / "programs" / _cpu()
        for own in (cache, folder.parent, folder):
            own.mkdir(parents=True, exist_ok=True)
            if own.stat().st_uid != os.geteuid():
                return ""
            own.chmod(0o700)
    except (OSError, RuntimeError):  # no home
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _cpu() -> str:
    """A name for this kind of CPU: machines that share a home must not run programs of each other's instructions."""
    known = [platform.system(), platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        known += sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _remove_oldest(folder: Path) -> None:
    with suppress(OSError):  # another process removes them, too
        files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir())
        total = sum(size for _, size, _ in files)
        if total <= _MAX_BYTES:
            return
        for _, size, path in files:
            path.unlink()
            total -= size
            if total <= _MAX_BYTES / 2:
                return
