"""The check of the parts of sequence and prompt models, and the evaluation of their networks."""

from __future__ import annotations

import equinox as eqx
from jax import Array

from ._embedding import Embedding, checked_embedding
from ._layer import Layer, checked_layer
from ._looped import Looped
from ._readout import Readout, checked_readout


def check_parts(owner: str, embedding: Embedding, network: Layer, readout: Readout) -> None:
    """Refuse parts that do not fit together.

    Raises:
        TypeError: for a part of the wrong kind.
        ValueError: for widths that differ.
    """
    checked_embedding(owner, embedding), checked_layer(owner, network), checked_readout(owner, readout)
    if embedding.width != network.width:
        raise ValueError(
            f"{owner}: the embedding gives width {embedding.width}, the network takes {network.width}; "
            "make them equal, e.g. by Projected(embedding, weights)"
        )
    readout.check_width(network.output_width)


@eqx.filter_jit
def apply_network(network: Layer, stream: Array, loops: int | None) -> Array:
    """Return the stream after the network, with another number of loops if one is given.

    Raises:
        TypeError: for a number of loops if the network is not looped.
    """
    if loops is None:
        return network(stream)
    if not isinstance(network, Looped):
        kind = type(network).__name__
        raise TypeError(f"loops: a {kind} is not looped; remove loops or make it Looped(layer, loops)")
    return network(stream, loops=loops)
