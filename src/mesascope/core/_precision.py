"""The 64-bit mode of JAX: its check, and threads that compute in the mode of another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def enable_x64() -> None:
    """Let JAX compute in 64-bit precision from now on, as exact losses and flows need.

    The same as `jax.config.update("jax_enable_x64", True)`. Importing mesascope never changes the configuration of JAX.
    """
    import jax

    jax.config.update("jax_enable_x64", True)


def require_x64(what: str) -> None:
    """Raise an error if JAX computes in 32-bit precision.

    Args:
        what: the name of the computation for the user, e.g. `"ExactMoments"`.

    Raises:
        ValueError: 64-bit mode is off.
    """
    import jax

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # defined at run time
        raise ValueError(
            f"{what} needs 64-bit precision, but JAX runs in 32-bit mode: call "
            "mesascope.enable_x64() first, or set JAX_ENABLE_X64=1 in the environment"
        )


def in_this_precision(work: Callable[P, R]) -> Callable[P, R]:
    """Return `work` for other threads, where it computes in the mode of this thread: a mode set by `with` ends there."""
    import jax

    wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # defined at run time

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(wide):
            return work(*args, **kwargs)

    return run
