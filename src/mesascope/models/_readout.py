"""Read-outs: maps from the tokens of the last stream to predictions."""

from __future__ import annotations

import abc
from typing import Annotated, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from pydantic import PlainSerializer, PlainValidator, StrictBool

from mesascope.core import integer_at_least
from mesascope.specs import PROMPTS, SYMBOLS, TOKENS, SpecError, show

from ._around_layer import checked_norm
from ._arrays import axes, finite_array, gaussian_array, positive_number, real_array, refuse_stacked
from ._kernels import project
from ._layer_norm import LayerNorm
from ._specified import readout


def _sign(value: Any) -> int:
    if isinstance(value, bool) or value not in (-1, 1):
        raise SpecError(f"must be -1 or 1, got {show(value)}")
    return int(value)


Sign = Annotated[float, PlainValidator(_sign), PlainSerializer(int)]


class Readout(eqx.Module):
    """A map of streams (…, n, width) to predictions (…, n, output width).

    Attributes:
        output_width: entries of a prediction.
    """

    @property
    @abc.abstractmethod
    def output_width(self) -> int:
        """Entries of a prediction."""

    @abc.abstractmethod
    def check_width(self, width: int) -> None:
        """Refuse streams that cannot be read.

        Raises:
            ValueError: for a width that does not fit.
        """

    @abc.abstractmethod
    def __call__(self, stream: Array) -> Array:
        """Return predictions (…, n, output width) from a stream (…, n, width)."""


@readout("first-block", predicts=(*TOKENS, *SYMBOLS))
class FirstBlock(Readout):
    """The first d entries: ŷ_t = (z_t)_{1…d}.

    Attributes:
        dim: d ≥ 1.

    Raises:
        TypeError, ValueError: if the dimension is not an integer ≥ 1.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int):
        self.dim = integer_at_least("dim", dim, 1)

    @property
    def output_width(self) -> int:
        """Entries of a prediction: d."""
        return self.dim

    def check_width(self, width: int) -> None:
        """Raise `ValueError` for streams with less than d entries."""
        if width < self.dim:
            raise ValueError(f"FirstBlock: reads {self.dim} entries, the network gives width {width}")

    def __call__(self, stream: Array) -> Array:
        """Return predictions (…, n, d) from a stream (…, n, width)."""
        return stream[..., : self.dim]


@readout("last-entry", predicts=PROMPTS)
class LastEntry(Readout):
    """The last entry with a sign: ŷ = sign · (z_t)_{d+1}, the position of the label of the query.

    Attributes:
        sign: −1 (vonoswald2023, ahn2023: the layers subtract the prediction) or +1 (zhang2024: they add it).

    Raises:
        ValueError: for another sign.
    """

    sign: float = eqx.field(static=True)

    def __init__(self, sign: Sign = -1):
        value: Any = sign
        if isinstance(value, bool) or not isinstance(value, int | float) or value not in (-1, 1):
            raise ValueError(f"LastEntry: sign must be -1 or +1, got {show(sign)}")
        self.sign = float(sign)

    @property
    def output_width(self) -> int:
        """Entries of a prediction: 1."""
        return 1

    def check_width(self, width: int) -> None:
        """Accept every width: every stream has a last entry."""

    def __call__(self, stream: Array) -> Array:
        """Return predictions (…, n, 1) from a stream (…, n, width)."""
        return self.sign * stream[..., -1:]


@readout("dense", predicts=(*TOKENS, *SYMBOLS, *PROMPTS), make="drawn")
class Dense(Readout):
    """An affine map: ŷ_t = W z_t + b.

    Attributes:
        weights: shape (output width, width); real or complex.
        bias: shape (output width,), or None.

    Raises:
        ValueError, TypeError: for shapes that do not fit, or numbers that are not finite.
    """

    weights: Array = eqx.field(metadata=axes(2))
    bias: Array | None = eqx.field(metadata=axes(1))

    def __init__(self, weights: Any, bias: Any = None):
        self.weights = finite_array("weights", weights, 2)
        self.bias = None if bias is None else finite_array("bias", bias, 1)
        if self.bias is not None and self.bias.shape != self.weights.shape[:1]:
            raise ValueError(
                f"Dense: bias must be ({self.weights.shape[0]},) like the weights, got {self.bias.shape}"
            )

    @classmethod
    def gaussian(cls, width: int, output_width: int, *, key: Array, output_gain: float = 1.0) -> Self:
        """Return a read-out with weights N(0, output_gain²/width) and bias 0."""
        width = integer_at_least("width", width, 1)
        output = integer_at_least("output_width", output_width, 1)
        scale = positive_number("output_gain", output_gain) * width**-0.5
        return cls(gaussian_array(key, (output, width), scale), jnp.zeros(output))

    @classmethod
    def drawn(
        cls, width: int, output_width: int, norm: StrictBool = False, *, key: Array
    ) -> Dense | NormedDense:
        """Return a read-out drawn by `gaussian`, after layer normalization if `norm`.

        Args:
            width: entries of a token of the stream.
            output_width: entries of a prediction.
            norm: whether layer normalization is applied first.
            key: random key.
        """
        dense = cls.gaussian(width, output_width, key=key)
        return NormedDense(dense) if norm else dense

    @property
    def output_width(self) -> int:
        """Entries of a prediction."""
        return int(self.weights.shape[-2])

    def check_width(self, width: int) -> None:
        """Raise `ValueError` for streams of another width than the weights."""
        if width != self.weights.shape[-1]:
            raise ValueError(
                f"Dense: weights take width {self.weights.shape[-1]}, the network gives width {width}"
            )

    def __call__(self, stream: Array) -> Array:
        """Return predictions (…, n, output width) from a stream (…, n, width)."""
        refuse_stacked(self)
        read = project(stream, self.weights)
        return read if self.bias is None else read + self.bias


class NormedDense(Readout):
    """Layer normalization, then an affine map: ŷ_t = W norm(z_t) + b.

    Attributes:
        dense: a real `Dense`.
        norm: a `LayerNorm` of the same width; by default `LayerNorm.unit`.

    Raises:
        TypeError, ValueError: for parts of another kind, or widths that differ.
    """

    dense: Dense
    norm: LayerNorm

    def __init__(self, dense: Dense, norm: LayerNorm | None = None):
        if not isinstance(dense, Dense):
            raise TypeError(f"NormedDense: dense must be a Dense read-out, got {type(dense).__name__}")
        real_array("weights", dense.weights, 2)
        self.dense = dense
        self.norm = checked_norm("NormedDense", norm, dense.weights.shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of a prediction."""
        return self.dense.output_width

    def check_width(self, width: int) -> None:
        """Raise `ValueError` for streams of another width than the weights."""
        self.dense.check_width(width)

    def __call__(self, stream: Array) -> Array:
        """Return predictions (…, n, output width) from a stream (…, n, width)."""
        return self.dense(self.norm(stream))


class ComplexPairs(Readout):
    """Complex predictions from real and imaginary parts: ŷ_t = r_{1…d} + i r_{d+1…2d} of the real read-out r.

    Attributes:
        readout: a read-out of real predictions of 2d entries.

    Raises:
        TypeError, ValueError: for something that is not a read-out, or a read-out with an odd number of entries; when
            called, for predictions that are complex.
    """

    readout: Readout

    def __init__(self, readout: Readout):
        self.readout = checked_readout("ComplexPairs", readout)
        if readout.output_width % 2:
            raise ValueError(
                f"ComplexPairs: needs an even number of entries, the read-out gives {readout.output_width}"
            )

    @property
    def output_width(self) -> int:
        """Entries of a prediction: d."""
        return self.readout.output_width // 2

    def check_width(self, width: int) -> None:
        """Raise `ValueError` for streams that the read-out cannot read."""
        self.readout.check_width(width)

    def __call__(self, stream: Array) -> Array:
        """Return complex predictions (…, n, d) from a stream (…, n, width)."""
        read = self.readout(stream)
        if jnp.iscomplexobj(read):
            raise TypeError(f"ComplexPairs: the read-out gives {read.dtype}; use it without ComplexPairs")
        real, imaginary = jnp.split(read, 2, axis=-1)
        return jax.lax.complex(real, imaginary)


def checked_readout(owner: str, readout: object) -> Readout:
    """Return `readout` after checking that it is a read-out.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(readout, Readout):
        kind = type(readout).__name__
        raise TypeError(f"{owner}: {kind} is not a read-out; use e.g. FirstBlock, LastEntry or Dense")
    return readout
