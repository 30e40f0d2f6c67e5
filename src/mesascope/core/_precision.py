"""The check for 64-bit mode, for computations whose results are meaningless in single precision."""

from __future__ import annotations


def require_x64(what: str) -> None:
    """Raise an error if JAX computes in 32-bit precision.

    mesascope never changes the configuration of JAX: that is the choice of the program that imports it.

    Args:
        what: the name of the computation for the user, e.g. `"ExactMoments"`.

    Raises:
        ValueError: 64-bit mode is off.
    """
    import jax

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # defined at run time
        raise ValueError(
            f"{what} needs 64-bit precision, but JAX runs in 32-bit mode: call "
            "jax.config.update('jax_enable_x64', True) first, or set JAX_ENABLE_X64=1 in the environment"
        )
