"""What sequence models and prompt models share: parts that fit together, and the way through them."""

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
        TypeError: for a part of another kind.
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
def streamed(network: Layer, stream: Array, loops: int | None) -> Array:
    """The stream behind the network, with another number of loops if one is given.

    Raises:
        TypeError: for a number of loops where the network is not looped.
    """
    if loops is None:
        return network(stream)
    if not isinstance(network, Looped):
        kind = type(network).__name__
        raise TypeError(f"loops: a {kind} is not looped; leave loops out or make it Looped(layer, loops)")
    return network(stream, loops=loops)
