"""Softmax transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesascope.core import split_keys
from mesascope.specs import PROMPTS, SYMBOLS, TOKENS, Depth, Size, SpecError

from ._model import model

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Embedding, PromptModel, SequenceModel, Stack, WithPositions


def _require_heads_divide_width(spec: Any) -> None:
    if spec.width % spec.heads:
        raise SpecError(f"must divide the width {spec.width}, got {spec.heads}", "heads")


@model("transformer", reads=TOKENS, refuse=_require_heads_divide_width, width=16, layers=1, heads=2)
def transformer(
    dim: int,
    width: Size,
    layers: Depth,
    heads: Size,
    horizon: int,
    *,
    key: Array,
    complex_tokens: bool = False,
) -> SequenceModel:
    """A softmax transformer of continuous tokens: dense embedding, learned positions, pre-norm blocks, normed read-out.

    Complex tokens are given to it as (Re; Im), and its predictions are converted to complex numbers.

    Args:
        dim: token dimension d.
        width: entries of a token of the streams, a multiple of `heads`.
        layers: number of layers.
        heads: number of heads in every layer.
        horizon: the longest context: its number of learned positions.
        key: random key.
        complex_tokens: whether tokens are complex.
    """
    from mesascope.models import BareTokens, ComplexPairs, Dense, NormedDense, RealForm, SequenceModel

    real_dim = (1 + complex_tokens) * dim
    keys = split_keys(key, 3)
    embedding = _positioned(BareTokens(real_dim), width, horizon, keys[0])
    network = _blocks(width, layers, heads, keys[1])
    readout = NormedDense(Dense.gaussian(width, real_dim, key=keys[2]))
    if complex_tokens:
        return SequenceModel(RealForm(embedding), network, ComplexPairs(readout))
    return SequenceModel(embedding, network, readout)


@model("token-transformer", reads=SYMBOLS, refuse=_require_heads_divide_width, width=16, layers=1, heads=2)
def token_transformer(
    vocabulary: int, width: Size, layers: Depth, heads: Size, horizon: int, *, key: Array
) -> SequenceModel:
    """The same as `transformer` for discrete tokens: a learned table of tokens, and logits as predictions.

    Args:
        vocabulary: number of symbols.
        width: entries of a token of the streams, a multiple of `heads`.
        layers: number of layers.
        heads: number of heads in every layer.
        horizon: the longest context: its number of learned positions.
        key: random key.
    """
    from mesascope.models import (
        Dense,
        LearnedPositions,
        NormedDense,
        SequenceModel,
        TokenTable,
        WithPositions,
    )

    keys = split_keys(key, 4)
    positions = LearnedPositions.gaussian(horizon, width, 0.1, key=keys[1])
    embedding = WithPositions(TokenTable.gaussian(vocabulary, width, key=keys[0]), positions)
    readout = NormedDense(Dense.gaussian(width, vocabulary, key=keys[3]))
    return SequenceModel(embedding, _blocks(width, layers, heads, keys[2]), readout)


@model("prompt-transformer", reads=PROMPTS, refuse=_require_heads_divide_width, width=16, layers=1, heads=2)
def prompt_transformer(
    dim: int, width: Size, layers: Depth, heads: Size, examples: int, *, key: Array
) -> PromptModel:
    """The same as `transformer` for interleaved prompts x_1, y_1, …, x_q of at most `examples` examples.

    Args:
        dim: dimension of the inputs.
        width: entries of a token of the streams, a multiple of `heads`.
        layers: number of layers.
        heads: number of heads in every layer.
        examples: the maximal number of examples of a prompt.
        key: random key.
    """
    from mesascope.models import Dense, InterleavedPrompt, NormedDense, PromptModel

    keys = split_keys(key, 3)
    horizon = 2 * examples + 1
    embedding = _positioned(InterleavedPrompt(dim), width, horizon, keys[0])
    readout = NormedDense(Dense.gaussian(width, 1, key=keys[2]))
    return PromptModel(embedding, _blocks(width, layers, heads, keys[1]), readout)


def _positioned(embedding: Embedding, width: int, horizon: int, key: Array) -> WithPositions:
    """Return a learned projection with learned positions, which are small compared to the tokens."""
    from mesascope.models import LearnedPositions, Projected, WithPositions

    key_weights, key_positions = split_keys(key)
    positions = LearnedPositions.gaussian(horizon, width, 0.1, key=key_positions)
    return WithPositions(Projected.gaussian(embedding, width, key=key_weights), positions)


def _blocks(width: int, layers: int, heads: int, key: Array) -> Stack:
    """Return pre-norm blocks of softmax attention and an MLP with four times as many hidden units as the width."""
    from mesascope.models import MLP, PreNorm, Residual, SoftmaxSelfAttention, Stack

    gain = (2 * layers) ** -0.5
    blocks = []
    for key_layer in split_keys(key, layers):
        key_attention, key_mlp = split_keys(key_layer)
        attention = SoftmaxSelfAttention.gaussian(width, heads, key=key_attention, output_gain=gain)
        mlp = MLP.one_hidden(width, key=key_mlp, output_gain=gain)
        blocks.append(Stack([Residual(PreNorm(attention)), Residual(PreNorm(mlp))]))
    return Stack(blocks)
