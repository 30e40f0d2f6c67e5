"""The stream of a model after the embedding and after every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.models import (
    Layer,
    LinearAttentionModel,
    LinearAttentionStack,
    Looped,
    PromptModel,
    Readout,
    Residual,
    SequenceModel,
    Stack,
)

from ._answers import MAX_SIZE, context_arrays
from ._problems import Problems, require_problems
from ._table import Tabled

Layered = SequenceModel | PromptModel


@dataclass(frozen=True, repr=False)
class LayerStreams(Tabled):
    r"""The stream of a model at the query after $\ell = 0, \dots, L$ layers.

    Attributes:
        streams: one array for every $\ell$, shape (batch, N + 1, width of the layer), 0 where the weight is 0; the first
            is the stream after the embedding.
        lengths: the numbers of examples n with positive weight.
        readout: the read-out, streams (batch, k, width) → predictions (batch, k, m), or None.
    """

    streams: tuple[np.ndarray, ...]
    lengths: np.ndarray
    readout: Callable[[np.ndarray], np.ndarray] | None

    def __str__(self) -> str:
        widths = ", ".join(str(stream.shape[-1]) for stream in self.streams)
        return (
            f"streams of {len(self.streams[0])} tasks after {len(self.lengths)} numbers of examples; widths {widths}, "
            f"after the embedding and {self.layers} layers"
        )

    @property
    def layers(self) -> int:
        """The number of layers L."""
        return len(self.streams) - 1

    def read(self, layer: int) -> np.ndarray:
        """Return the read-out of the stream after a layer, shape (batch, N + 1, m); 0 where the weight is 0.

        Args:
            layer: ℓ in 0 … L.

        Raises:
            TypeError: there is no read-out.
            ValueError: an unknown layer, or a read-out that does not accept the stream or does not give (batch, k, m).
        """
        if self.readout is None:
            raise TypeError("readout: these streams have none; give one to layer_streams(…, readout=…)")
        if not 0 <= layer <= self.layers:
            raise ValueError(f"layer: must be in 0 … {self.layers}, got {layer}")
        full = self.streams[layer]
        stream = full[:, self.lengths]
        try:
            predictions = np.asarray(self.readout(stream))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"readout: cannot read the stream after layer {layer}, of shape {stream.shape}: {error}"
            ) from error
        if predictions.ndim != 3 or predictions.shape[:2] != stream.shape[:2]:
            raise ValueError(
                f"readout: must map streams {stream.shape} to predictions ({len(stream)}, {len(self.lengths)}, m), "
                f"gave {predictions.shape}"
            )
        read = np.zeros((*full.shape[:2], predictions.shape[-1]), predictions.dtype)
        read[:, self.lengths] = predictions
        return read


def require_streams(streams: object) -> None:
    """Refuse anything but streams.

    Raises:
        TypeError: the type is another one.
    """
    if not isinstance(streams, LayerStreams):
        raise TypeError(
            f"streams: must be what layer_streams(model, problems) returns, got {type(streams).__name__}"
        )


def layer_streams(
    model: Any, problems: Problems, *, readout: Callable[[Any], Any] | None = None
) -> LayerStreams:
    """Return the stream at the query after the embedding and every layer, for all numbers of examples with positive weight.

    A block of a `Stack`, a layer of a `LinearAttentionStack` with its residual connection, and a loop of `Looped` are one
    layer each; any other network is a single layer.

    Args:
        model: a `SequenceModel` or `PromptModel`; or a function that gives the list of the streams at the query: contexts
            (batch, t, d), of prompts x (batch, n + 1, d) and y (batch, n), → arrays (batch, width), first after the
            embedding, then after every layer.
        problems: the problems.
        readout: streams (batch, k, width) → predictions (batch, k, m); by default that of the model.
            For symbols it gives probabilities.

    Raises:
        TypeError: a model without layers or for other data, or a function that does not return a list.
        ValueError: streams have another shape, are not finite, or their number depends on the number of examples.
    """
    require_problems(problems)
    if isinstance(model, Layered):
        found, own = _streams_of_model(model, problems), _own_readout(model, problems.symbols)
    elif isinstance(model, LinearAttentionModel) or not callable(model):
        raise TypeError(
            f"model: {type(model).__name__} has no layers to inspect; take a SequenceModel, a PromptModel or a function "
            "of contexts that gives the list of its streams"
        )
    else:
        found, own = _streams_of_function(model, problems), None
    counted = problems.weights[:, None] > 0
    streams = tuple(np.where(counted, stream, 0) for stream in found)
    return LayerStreams(streams, problems.lengths, own if readout is None else readout)


def unrolled(network: Layer) -> Stack:
    """Return the same network as a stack of maps of streams, one for every layer."""
    if isinstance(network, LinearAttentionStack):
        return Stack(Residual(layer) for layer in network.layers)
    if isinstance(network, Looped):
        return Stack([network.layer] * network.loops)
    return network if isinstance(network, Stack) else Stack([network])


def token_streams(model: Layered, problems: Problems, n: int) -> tuple[Array, ...]:
    """Return the streams of all tokens, for n examples and the query, after the embedding and after every layer.

    Each has shape (batch, tokens, width).

    Raises:
        TypeError: a model for other data.
    """
    check_reads(model, problems)
    return _token_streams(model, context_arrays(problems, n))


@eqx.filter_jit
def _token_streams(model: Layered, arrays: tuple[Any, ...]) -> tuple[Array, ...]:
    stream = model.embedding(*arrays)
    return (stream, *unrolled(model.network).outputs(stream))


def check_reads(model: Layered, problems: Problems) -> None:
    """Refuse problems that the model does not read.

    Raises:
        TypeError: sequences for a model of prompts, or prompts for a model of sequences.
    """
    if isinstance(model, PromptModel) != problems.prompts:
        kind = "prompts" if problems.prompts else "sequences"
        raise TypeError(f"model: a {type(model).__name__} does not read {kind}, which the problems are")


def _own_readout(model: Layered, symbols: bool) -> Callable[[np.ndarray], np.ndarray]:
    def readout(stream: np.ndarray) -> np.ndarray:
        model.readout.check_width(stream.shape[-1])
        return np.asarray(_read(model.readout, stream, symbols))

    return readout


@eqx.filter_jit
def _read(readout: Readout, stream: Any, symbols: bool) -> Array:
    read = readout(stream)
    return jax.nn.softmax(read) if symbols else read


def _streams_of_model(model: Layered, problems: Problems) -> list[np.ndarray]:
    if model.embedding.layout == "stacked" or not model.network.causal:
        return _one_by_one(
            lambda n: [np.asarray(z[:, -1]) for z in token_streams(model, problems, n)], problems
        )
    every, lengths = 2 if model.embedding.layout == "interleaved" else 1, len(problems.weights)
    streams = token_streams(model, problems, lengths - 1)
    return [_checked(np.asarray(stream[:, ::every]), lengths) for stream in streams]


def _streams_of_function(function: Callable[..., Any], problems: Problems) -> list[np.ndarray]:
    def at(n: int) -> list[np.ndarray]:
        given = function(*context_arrays(problems, n))
        if not isinstance(given, list | tuple) or not given:
            raise TypeError(
                f"model: must give a list of streams, one after the embedding and one after every layer, gave a "
                f"{type(given).__name__}"
            )
        return [np.asarray(stream) for stream in given]

    return _one_by_one(at, problems)


def _one_by_one(at: Callable[[int], list[np.ndarray]], problems: Problems) -> list[np.ndarray]:
    """Return the streams at the query, computed separately for every number of examples."""
    by_length = {int(n): at(int(n)) for n in problems.lengths}
    first = next(iter(by_length.values()))
    for n, streams in by_length.items():
        if len(streams) != len(first):
            raise ValueError(
                f"model: gives {len(first)} streams after some examples, {len(streams)} after {n}"
            )
        for layer, (stream, expected) in enumerate(zip(streams, first, strict=True)):
            if stream.ndim != 2 or stream.shape != expected.shape or len(stream) != problems.tasks:
                raise ValueError(
                    f"model: the stream after layer {layer} must have shape ({problems.tasks}, width), the same for all "
                    f"numbers of examples, got {stream.shape} after {n}"
                )
    joined = []
    for layer, one in enumerate(first):
        stream = np.zeros((problems.tasks, len(problems.weights), one.shape[-1]), one.dtype)
        for n, streams in by_length.items():
            stream[:, n] = streams[layer]
        joined.append(_checked(stream, len(problems.weights)))
    return joined


def _checked(stream: np.ndarray, lengths: int) -> np.ndarray:
    if stream.ndim != 3 or stream.shape[1] != lengths:
        raise ValueError(f"model: expected streams of {lengths} queries, got shape {stream.shape}")
    if not np.isfinite(stream).all():
        raise ValueError("model: its streams are infinite or nan; fix the model, or take other data")
    if stream.size and np.abs(stream).max() > MAX_SIZE:
        raise ValueError(
            f"model: its streams reach {np.abs(stream).max():.3g}, and squares of such numbers leave the range of floating "
            "point; measure in other units"
        )
    return stream


def counted_stream(stream: np.ndarray, problems: Problems) -> np.ndarray:
    """Return the stream at the numbers of examples with positive weight, (batch, k, width).

    Raises:
        ValueError: the stream does not have the shape of the problems.
    """
    if stream.shape[:2] != (problems.tasks, len(problems.weights)):
        raise ValueError(
            f"streams: have shape {stream.shape}, the problems {problems.tasks} tasks of up to "
            f"{len(problems.weights) - 1} examples; give the problems of the streams"
        )
    return stream[:, problems.lengths]
