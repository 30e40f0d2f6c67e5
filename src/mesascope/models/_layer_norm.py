"""Layer normalization."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least

from ._arrays import axes, real_array
from ._layer import Layer, checked_real_stream
from ._specified import layer, only_real

_EPSILON = 1e-5  # the usual value, so that the norm of a constant token is finite


@layer("layer-norm", make="unit", real=only_real, residual=False)
class LayerNorm(Layer):
    """Normalization of every token to mean 0 and variance 1: z ↦ gain · (z − mean z)/√(var z + 10⁻⁵) + bias.

    Attributes:
        gain: shape (width,), real.
        bias: shape (width,), real, or None.

    Raises:
        ValueError, TypeError: for shapes that do not fit, or numbers that are complex or not finite.
    """

    gain: Array = eqx.field(metadata=axes(1))
    bias: Array | None = eqx.field(metadata=axes(1))

    def __init__(self, gain: Any, bias: Any = None):
        self.gain = real_array("gain", gain, 1)
        self.bias = None if bias is None else real_array("bias", bias, 1)
        if self.bias is not None and self.bias.shape != self.gain.shape:
            raise ValueError(
                f"LayerNorm: gain and bias must have one shape, got {self.gain.shape} and {self.bias.shape}"
            )

    @classmethod
    def unit(cls, width: int) -> Self:
        """Return the layer with gain 1 and bias 0, where training starts.

        Args:
            width: entries of a token.
        """
        width = integer_at_least("width", width, 1)
        return cls(jnp.ones(width), jnp.zeros(width))

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.gain.shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.width

    @property
    def causal(self) -> bool:
        """True: every token is mapped independently."""
        return True

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, width)."""
        stream = checked_real_stream(self, stream)
        centred = stream - stream.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        normed = centred * jax.lax.rsqrt(variance + _EPSILON) * self.gain
        return normed if self.bias is None else normed + self.bias
