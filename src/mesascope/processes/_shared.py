"""Numbers that are drawn once, from the seed of a process, and shared by all its sequences or prompts."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def shared(draw: Callable[[], Array]) -> Float[Array, "..."]:
    """Return what `draw` gives in 64-bit arithmetic, rounded to the precision in use.

    Draws of 32 and of 64 bits are different numbers: a process would be another one for a model that is trained in
    single precision and judged in double.
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        numbers = np.asarray(draw())
    return jnp.asarray(numbers)
