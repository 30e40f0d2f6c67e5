"""Noise on labels, with a fixed standard deviation or one drawn for every task."""

from __future__ import annotations

import abc
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from ..core import exact
from ..specs import (
    Component,
    Nonnegative,
    Number,
    Positive,
    SpecError,
    kind,
    nonnegative,
    one_of_or,
    show_number,
)

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


class NoiseLevels(Component, family="noise"):
    r"""Base class of the distributions of a noise level $\sigma_\tau \ge 0$ that is drawn for every task."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
        """Return independent levels."""

    @abc.abstractmethod
    def moment(self, order: int) -> Fraction:
        r"""Return $E \sigma_\tau^k$ of an order $k \ge 0$."""

    @abc.abstractmethod
    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Return the levels below which these shares of the tasks are, in (0, 1)."""

    @abc.abstractmethod
    def scaled(self, factor: Number) -> NoiseLevels:
        """Return the distribution of the levels times a factor > 0."""

    @abc.abstractmethod
    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Return values and weights with $\sum_i w_i v_i^k = E \sigma_\tau^{2k}$ for $k \le 2$."""


@kind("noise-range", largest=1)
class NoiseRange(NoiseLevels):
    r"""A noise level $\sigma_\tau$ drawn for every task, uniform on $[0, \sigma_{\max}]$ (vladymyrov2024).

    Args:
        largest: $\sigma_{\max} > 0$.
    """

    largest: Positive

    def draw(self, key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
        """Return independent levels."""
        import jax

        return float(self.largest) * jax.random.uniform(key, (count,))

    def moment(self, order: int) -> Fraction:
        r"""Return $\sigma_{\max}^k / (k + 1)$."""
        return exact(self.largest) ** order / (order + 1)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Return the shares of the largest level."""
        return float(self.largest) * shares

    def scaled(self, factor: Number) -> NoiseRange:
        """Return the range to `factor` times the largest level."""
        return NoiseRange(self.largest * factor)

    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rule of Gauss with three nodes."""
        nodes, weights = np.polynomial.legendre.leggauss(3)
        return (float(self.largest) * (nodes + 1) / 2) ** 2, weights / 2

    def describe(self) -> str:
        """Return e.g. `U(0, 5)`."""
        return f"U(0, {show_number(self.largest)})"


@kind("noise-choice", levels=(1, 3))
class NoiseChoice(NoiseLevels):
    r"""A noise level $\sigma_\tau$ drawn for every task from a few, equally likely: the categorical noise of vladymyrov2024.

    Args:
        levels: their values, each at least 0; at least one.
    """

    levels: tuple[Nonnegative, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise SpecError("must have at least one level", "levels")

    def draw(self, key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
        """Return independent levels."""
        import jax
        import jax.numpy as jnp

        return jax.random.choice(key, jnp.asarray([float(one) for one in self.levels]), (count,))

    def moment(self, order: int) -> Fraction:
        r"""Return the mean of the powers of the levels."""
        return sum((exact(one) ** order for one in self.levels), Fraction(0)) / len(self.levels)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Return the levels in rising order, each for as many shares as the others."""
        rising = np.sort([float(one) for one in self.levels])
        return rising[np.floor(shares * len(rising)).astype(int)]

    def scaled(self, factor: Number) -> NoiseChoice:
        """Return the choice of `factor` times the levels."""
        return NoiseChoice(tuple(one * factor for one in self.levels))

    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the squares of the levels."""
        count = len(self.levels)
        return np.array([float(one) ** 2 for one in self.levels]), np.full(count, 1 / count)

    def describe(self) -> str:
        """Return e.g. `U{1, 3}`."""
        return f"U{{{', '.join(map(show_number, self.levels))}}}"


NoiseField: TypeAlias = Annotated[
    Number | NoiseLevels, *one_of_or("noise", nonnegative, default="noise-range")
]
"""A standard deviation ≥ 0, or a distribution of them."""


def show_noise(noise: Number | NoiseLevels) -> str:
    """Return e.g. `noise=0.1` or `noise ~ U(0, 5)`."""
    return f"noise ~ {noise.describe()}" if isinstance(noise, NoiseLevels) else f"noise={show_number(noise)}"


def add_noise(
    key: PRNGKeyArray, labels: Float[Array, "batch n"], noise: Number | NoiseLevels
) -> Float[Array, "batch n"]:
    """Return labels with independent Gaussian noise of the given standard deviation, or of one drawn for each row."""
    import jax
    import jax.numpy as jnp

    from ._draws import standard_normal

    if noise == 0:
        return labels
    level_key, key = jax.random.split(key)
    level = (
        noise.draw(level_key, len(labels))[:, None]
        if isinstance(noise, NoiseLevels)
        else jnp.asarray(float(noise))
    )
    return labels + level * standard_normal(key, labels.shape)


def noise_moment(noise: Number | NoiseLevels, order: int) -> Fraction:
    r"""Return $E \sigma^k$ of a fixed level or of a distribution."""
    return noise.moment(order) if isinstance(noise, NoiseLevels) else exact(noise) ** order


def noise_rule(noise: Number | NoiseLevels) -> tuple[np.ndarray, np.ndarray]:
    """Return the rule of a distribution, or the one value of a fixed level; see `NoiseLevels.rule`."""
    return noise.rule() if isinstance(noise, NoiseLevels) else (np.array([float(noise) ** 2]), np.ones(1))
