"""Sine waves of random amplitude and phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import split_keys
from ..specs import Positive, SpecError, kind
from ._process import Target

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("sine-waves")
class SineWaves(Target):
    r"""Sine waves $f(x) = A \sin(\varphi + \sum_j x_j)$ whose amplitude and phase are drawn for every prompt.

    $A$ is uniform between the two amplitudes and $\varphi$ on $[0, \pi]$, independently.
    `NonlinearRegression(1, SineWaves(), Uniform(5.0))` is the regression of vonoswald2023, Figure 4, whose program draws
    both from one random number.

    Args:
        least: the least amplitude, > 0.
        largest: the largest amplitude, at least the least one.
    """

    least: Positive = 0.1
    largest: Positive = 0.5

    def __post_init__(self) -> None:
        if self.largest < self.least:
            raise SpecError(f"is {self.largest:g}, below `least`, {self.least:g}: swap them", "largest")

    def draw(self, key: PRNGKeyArray, dim: int, count: int) -> tuple[Array, Array]:
        """Draw waves: amplitudes and phases, each of shape `(count,)`."""
        import jax
        import jax.numpy as jnp

        amplitude_key, phase_key = split_keys(key)
        least, largest = float(self.least), float(self.largest)
        amplitudes = jax.random.uniform(amplitude_key, (count,), minval=least, maxval=largest)
        return amplitudes, jax.random.uniform(phase_key, (count,), maxval=jnp.pi)

    def values(
        self, functions: tuple[Array, Array], x: Float[Array, "batch n dim"]
    ) -> Float[Array, "batch n"]:
        """Return one wave at every row of inputs, shape `(batch, n)`."""
        import jax.numpy as jnp

        amplitudes, phases = functions
        return amplitudes[:, None] * jnp.sin(x.sum(-1) + phases[:, None])
