"""Models that predict the label of a query from examples."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ._arrays import refuse_stacked
from ._embedding import Embedding
from ._layer import Layer
from ._parts import apply_network, check_parts
from ._readout import Readout


class PromptModel(eqx.Module):
    """A model of prompts: examples and a query → embedding → network → read-out → the label of the query.

    Attributes:
        embedding: `StackedPrompt` or `InterleavedPrompt`, also projected or with positions.
        network: any layer, e.g. `LinearAttentionStack`, `Stack` or `Looped`.
        readout: a read-out with a single entry, e.g. `LastEntry` or `Dense`.

    Raises:
        TypeError: for a part of the wrong kind.
        ValueError: for widths that do not fit, or a read-out of several entries.
    """

    embedding: Embedding
    network: Layer
    readout: Readout

    def __init__(self, embedding: Embedding, network: Layer, readout: Readout):
        check_parts("PromptModel", embedding, network, readout)
        if embedding.layout == "tokens":
            kind = type(embedding).__name__
            raise TypeError(f"PromptModel: must embed prompts, but {kind} embeds tokens; use SequenceModel")
        if readout.output_width != 1:
            raise ValueError(
                f"PromptModel: a label is one number, the read-out gives {readout.output_width}; use e.g. LastEntry"
            )
        self.embedding, self.network, self.readout = embedding, network, readout

    @property
    def one_pass(self) -> bool:
        """Whether one pass predicts after every number of examples: interleaved prompts in a causal network."""
        return self.embedding.layout == "interleaved" and self.network.causal

    def predictions(self, x: Any, y: Any, *, loops: int | None = None) -> Array:
        """Return ŷ_{t+1}, the predicted label of the query x_{t+1} after the examples 1 … t, for every t = 0 … N.

        Interleaved prompts in a causal network need one pass. All others need one pass for every t, each compiled
        separately: if only t = N is needed, call the model instead.

        Args:
            x: inputs, shape (…, N + 1, d), N ≥ 0.
            y: labels of the first N inputs, shape (…, N).
            loops: for a `Looped` network: number of loops, by default `network.loops`.

        Returns:
            Shape (…, N + 1); entry t is the prediction after t examples.

        Raises:
            TypeError, ValueError: for x or y that do not fit, or loops if the network is not looped.
        """
        refuse_stacked(self)
        x, y = jnp.asarray(x), jnp.asarray(y)
        stream = self.embedding(x, y)
        if self.one_pass:
            return self._labels(apply_network(self.network, stream, loops)[..., ::2, :])
        prefixes = [self(x[..., : t + 1, :], y[..., :t], loops=loops) for t in range(x.shape[-2])]
        return jnp.stack(prefixes, -1)

    def __call__(self, x: Any, y: Any, *, loops: int | None = None) -> Array:
        """Return the label of the query after all examples: x (…, N + 1, d) and y (…, N) → (…,), N ≥ 0."""
        refuse_stacked(self)
        stream = self.embedding(x, y)
        last = (
            self.network.last(stream)
            if loops is None
            else apply_network(self.network, stream, loops)[..., -1:, :]
        )
        return self._labels(last)[..., 0]

    def _labels(self, stream: Array) -> Array:
        return self.readout(stream)[..., 0]
