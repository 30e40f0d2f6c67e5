"""Noise on labels, of one size or of a size that differs from task to task."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, finite_nonnegative, finite_positive, show_number
from ._law import Static
from ._normal import standard_normal


class NoiseRange(Static):
    r"""A noise level $\sigma_\tau$ drawn for every task, uniform on $[0, \sigma_{\max}]$ (vladymyrov2024).

    Args:
        largest: $\sigma_{\max} > 0$.

    Raises:
        TypeError: `largest` is not a number.
        ValueError: `largest` is not finite and positive.
    """

    largest: Number = eqx.field(static=True)

    def __init__(self, largest: Number | str):
        self.largest = finite_positive("NoiseRange largest", largest)

    def describe(self) -> str:
        """Return e.g. `U(0, 5)`."""
        return f"U(0, {show_number(self.largest)})"


def checked_noise(owner: str, noise: Number | str | NoiseRange) -> Number | NoiseRange:
    """Return a noise level that is a range or a finite number ≥ 0.

    Raises:
        TypeError: `noise` is neither a number nor a `NoiseRange`.
        ValueError: a number that is negative or not finite.
    """
    return noise if isinstance(noise, NoiseRange) else finite_nonnegative(f"{owner} noise", noise)


def show_noise(noise: Number | NoiseRange) -> str:
    """Return e.g. `noise=0.1` or `noise ~ U(0, 5)`."""
    return f"noise ~ {noise.describe()}" if isinstance(noise, NoiseRange) else f"noise={show_number(noise)}"


def add_noise(
    key: PRNGKeyArray, labels: Float[Array, "batch n"], noise: Number | NoiseRange
) -> Float[Array, "batch n"]:
    """Add independent Gaussian noise of the given level to labels, one level for each row."""
    if noise == 0:
        return labels
    level_key, key = jax.random.split(key)
    if isinstance(noise, NoiseRange):
        level = float(noise.largest) * jax.random.uniform(level_key, (len(labels), 1))
    else:
        level = jnp.asarray(float(noise))
    return labels + level * standard_normal(key, labels.shape)
