"""Multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys
from mesascope.specs import Size, show

from ._arrays import axes, gaussian_array, positive_number, real_array
from ._kernels import project
from ._layer import Layer, checked_real_stream
from ._specified import layer, only_real

Activation = Literal["gelu", "relu"]
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": partial(jax.nn.gelu, approximate=False),
    "relu": jax.nn.relu,
}


@layer("mlp", make="one_hidden", real=only_real)
class MLP(Layer):
    """A multilayer perceptron on every token: z ↦ W_m σ(… σ(W_1 z + b_1) …) + b_m.

    Attributes:
        weights: matrices W_1 … W_m, shapes (w_1, w_0), (w_2, w_1) …, real.
        biases: vectors b_1 … b_m, shapes (w_1,), (w_2,) …, real.
        activation: σ: "gelu" (z Φ(z), Φ the distribution function of the normal law) or "relu".

    Raises:
        ValueError, TypeError: for shapes that do not fit, numbers that are complex or not finite, an unknown activation.
    """

    weights: tuple[Array, ...] = eqx.field(metadata=axes(2))
    biases: tuple[Array, ...] = eqx.field(metadata=axes(1))
    activation: Activation = eqx.field(static=True)

    def __init__(self, weights: Iterable[Any], biases: Iterable[Any], activation: Activation = "gelu"):
        self.weights = tuple(real_array(f"weights[{i}]", w, 2) for i, w in enumerate(weights))
        self.biases = tuple(real_array(f"biases[{i}]", b, 1) for i, b in enumerate(biases))
        _check_fit([w.shape for w in self.weights], [b.shape for b in self.biases])
        if activation not in get_args(Activation):
            raise ValueError(f"activation: {show(activation)} is unknown; use one of {', '.join(_FUNCTIONS)}")
        self.activation = activation

    @classmethod
    def gaussian(
        cls,
        widths: Iterable[int],
        *,
        key: Array,
        output_gain: float = 1.0,
        activation: Activation = "gelu",
    ) -> Self:
        """Return an MLP of widths w_0, …, w_m: entries N(0, 1/fan-in), those of W_m times `output_gain`; biases 0."""
        sizes = [integer_at_least("width", width, 1) for width in widths]
        if len(sizes) < 2:
            raise ValueError(f"widths: an MLP needs at least two, of input and output, got {sizes}")
        gains = [1.0] * (len(sizes) - 2) + [positive_number("output_gain", output_gain)]
        keys = split_keys(key, len(gains))
        drawn = zip(keys, sizes[1:], sizes[:-1], gains, strict=True)
        weights = [gaussian_array(k, (out, fan_in), gain * fan_in**-0.5) for k, out, fan_in, gain in drawn]
        return cls(weights, [jnp.zeros(size) for size in sizes[1:]], activation)

    @classmethod
    def one_hidden(
        cls,
        width: int,
        hidden: Size | None = None,
        *,
        key: Array,
        output_gain: float = 1.0,
        activation: Activation = "gelu",
    ) -> Self:
        """Return an MLP with one hidden layer, drawn as in `gaussian`, with equal input and output width.

        Args:
            width: entries of a token.
            hidden: number of hidden units; by default four times the width.
            key: random key.
            output_gain: factor > 0 of the entries of the second matrix.
            activation: "gelu" or "relu".
        """
        widths = (width, hidden or 4 * width, width)
        return cls.gaussian(widths, key=key, output_gain=output_gain, activation=activation)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.weights[0].shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return int(self.weights[-1].shape[-2])

    @property
    def causal(self) -> bool:
        """True: every token is mapped independently."""
        return True

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        stream = checked_real_stream(self, stream)
        *inner, (last, last_bias) = zip(self.weights, self.biases, strict=True)
        for weights, bias in inner:
            stream = _FUNCTIONS[self.activation](project(stream, weights) + bias)
        return project(stream, last) + last_bias


def _check_fit(weights: list[tuple[int, ...]], biases: list[tuple[int, ...]]) -> None:
    chained = all(after[1] == before[0] for before, after in pairwise(weights))
    if not weights or not chained or biases != [shape[:1] for shape in weights]:
        wanted = "weights (w_1, w_0), (w_2, w_1) … and biases (w_1,), (w_2,) …"
        raise ValueError(f"MLP: shapes do not fit: expected {wanted}, got {weights} and {biases}")
