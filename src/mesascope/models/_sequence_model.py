"""Models that predict the next token."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ._arrays import refuse_stacked
from ._embedding import Embedding
from ._layer import Layer
from ._parts import apply_network, check_parts
from ._readout import Readout


class SequenceModel(eqx.Module):
    """A model of sequences: tokens → embedding → network → read-out → predictions of the next token.

    Attributes:
        embedding: an embedding of tokens, e.g. `PairedTokens` or `TokenTable`.
        network: a causal layer, e.g. `LinearAttentionStack`, `Stack` or `Looped`.
        readout: e.g. `FirstBlock` or `NormedDense`; it gives the entries of a token, or logits of discrete tokens.

    Raises:
        TypeError: for a part of the wrong kind.
        ValueError: for widths that do not fit, or a network that sees later tokens.
    """

    embedding: Embedding
    network: Layer
    readout: Readout

    def __init__(self, embedding: Embedding, network: Layer, readout: Readout):
        check_parts("SequenceModel", embedding, network, readout)
        if embedding.layout != "tokens":
            kind = type(embedding).__name__
            raise TypeError(f"SequenceModel: must embed tokens, but {kind} embeds prompts; use PromptModel")
        if not network.causal:
            raise ValueError(
                "SequenceModel: the network sees the tokens to predict; make its layers context='causal'"
            )
        self.embedding, self.network, self.readout = embedding, network, readout

    def predictions(self, tokens: Any, *, loops: int | None = None) -> Array:
        """Return ŷ_t for every context length t = 2 … T, in one pass.

        Args:
            tokens: x_1 … x_T, T ≥ 2: shape (…, T, d), real or complex, or integers (…, T).
            loops: for a `Looped` network: number of loops, by default `network.loops`.

        Returns:
            Shape (…, T − 1, out); entry t − 2 along the second axis is the prediction of x_{t+1} from x_1 … x_t.

        Raises:
            TypeError, ValueError: for tokens that do not fit, or loops if the network is not looped.
        """
        return self.readout(self._stream(tokens, loops)[..., 1:, :])

    def __call__(self, contexts: Any, *, loops: int | None = None) -> Array:
        """Return ŷ_t for the whole context only: contexts (…, t, d) or integers (…, t) → (…, out), t ≥ 2."""
        return self.readout(self._stream(contexts, loops)[..., -1:, :])[..., 0, :]

    def _stream(self, tokens: Any, loops: int | None) -> Array:
        refuse_stacked(self)
        if jnp.size(tokens) == 0:
            raise ValueError(
                f"tokens: a context needs at least 2 tokens, got none: shape {jnp.shape(tokens)}"
            )
        stream = self.embedding(tokens)
        if not jnp.issubdtype(jnp.result_type(tokens), jnp.inexact):
            stream = _in_weight_type(self.network, stream)
        if stream.shape[-2] < 2:
            raise ValueError(f"tokens: a context needs at least 2 tokens, got {stream.shape[-2]}")
        return apply_network(self.network, stream, loops)


def _in_weight_type(network: Layer, stream: Array) -> Array:
    """Return the stream in the precision of the weights, since integers have no floating-point precision."""
    weights = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return stream.astype(jnp.result_type(*weights)) if weights else stream
