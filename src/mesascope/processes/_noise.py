"""Noise on labels, with a fixed standard deviation or one drawn for every task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from ..specs import Component, Number, Positive, kind, nonnegative, one_of_or, show_number

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("noise-range", largest=1)
class NoiseRange(Component, family="noise"):
    r"""A noise level $\sigma_\tau$ drawn for every task, uniform on $[0, \sigma_{\max}]$ (vladymyrov2024).

    Args:
        largest: $\sigma_{\max} > 0$.
    """

    largest: Positive

    def describe(self) -> str:
        """Return e.g. `U(0, 5)`."""
        return f"U(0, {show_number(self.largest)})"


NoiseField: TypeAlias = Annotated[
    Number | NoiseRange, *one_of_or("noise", nonnegative, default="noise-range")
]
"""A standard deviation ≥ 0, or a distribution of them."""


def show_noise(noise: Number | NoiseRange) -> str:
    """Return e.g. `noise=0.1` or `noise ~ U(0, 5)`."""
    return f"noise ~ {noise.describe()}" if isinstance(noise, NoiseRange) else f"noise={show_number(noise)}"


def add_noise(
    key: PRNGKeyArray, labels: Float[Array, "batch n"], noise: Number | NoiseRange
) -> Float[Array, "batch n"]:
    """Return labels with independent Gaussian noise of the given standard deviation, or of one drawn for each row."""
    import jax
    import jax.numpy as jnp

    from ._draws import standard_normal

    if noise == 0:
        return labels
    level_key, key = jax.random.split(key)
    if isinstance(noise, NoiseRange):
        level = float(noise.largest) * jax.random.uniform(level_key, (len(labels), 1))
    else:
        level = jnp.asarray(float(noise))
    return labels + level * standard_normal(key, labels.shape)
