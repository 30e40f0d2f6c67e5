"""Positional encodings: a vector for every position in a stream."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least

from ._arrays import axes, finite_array, gaussian_array, positive_number
from ._layer import checked_stream


class LearnedPositions(eqx.Module):
    """A learned vector for every position up to a horizon: z_t ↦ z_t + row t of the table.

    Attributes:
        table: shape (horizon, width).

    Raises:
        TypeError, ValueError: for a table that is not a matrix of finite numbers; when called, for longer streams.
    """

    table: Array = eqx.field(metadata=axes(2))

    def __init__(self, table: Any):
        self.table = finite_array("table", table, 2)

    @classmethod
    def gaussian(cls, horizon: int, width: int, scale: float, *, key: Array) -> Self:
        """Return positions with independent N(0, scale²) entries, scale > 0."""
        shape = integer_at_least("horizon", horizon, 1), integer_at_least("width", width, 1)
        return cls(gaussian_array(key, shape, positive_number("scale", scale)))

    @property
    def width(self) -> int:
        """Entries of a token of the stream."""
        return int(self.table.shape[-1])

    def __call__(self, stream: Any) -> Array:
        """Return the stream plus its positions, shape (…, n, width)."""
        stream = checked_stream(self, stream)
        tokens, horizon = stream.shape[-2], self.table.shape[-2]
        if tokens > horizon:
            raise ValueError(
                f"LearnedPositions: the stream has {tokens} tokens, but positions are learned for {horizon}"
            )
        return stream + self.table[:tokens]


class SinusoidalPositions(eqx.Module):
    """Waves with geometrically growing wavelengths: p_t = (sin ω_1 t, cos ω_1 t, sin ω_2 t, …), ω_j = 10000^{−2(j−1)/width}.

    Attributes:
        width: entries of a token of the stream, ≥ 1; t = 0 is the first position.

    Raises:
        TypeError, ValueError: if the width is not an integer ≥ 1.
    """

    width: int = eqx.field(static=True)

    def __init__(self, width: int):
        self.width = integer_at_least("width", width, 1)

    def __call__(self, stream: Any) -> Array:
        """Return the stream plus its positions, shape (…, n, width)."""
        stream = checked_stream(self, stream)
        entries = np.arange(self.width)
        frequencies = 10000.0 ** (-2 * (entries // 2) / self.width)
        phases = np.arange(stream.shape[-2])[:, None] * frequencies
        waves = np.where(entries % 2, np.cos(phases), np.sin(phases))
        return stream + jnp.asarray(waves, jnp.finfo(stream.dtype).dtype)
