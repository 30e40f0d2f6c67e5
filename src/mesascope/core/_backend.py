"""Whether JAX can compute here at all."""

from __future__ import annotations


class BackendError(ValueError):
    """The platform that the environment asks JAX for does not work on this machine."""


def require_backend() -> None:
    """Start JAX on its platform.

    Raises:
        BackendError: it does not start; names the variable with which a platform is chosen.
    """
    import jax

    try:
        jax.devices()
    except Exception as error:  # of several kinds, some without text
        asked = jax.config.jax_platforms  # type: ignore[attr-defined]  # defined at run time
        reason = str(error).partition("\n")[0] or "it is not installed, or finds no device"
        if asked:
            told = f"JAX_PLATFORMS={asked}: JAX cannot compute on this platform ({reason}); unset the variable, or name a"
            raise BackendError(f"{told} platform of this machine, such as cpu") from error
        raise BackendError(
            f"JAX does not start ({reason}); JAX_PLATFORMS=cpu computes without an accelerator"
        ) from error
