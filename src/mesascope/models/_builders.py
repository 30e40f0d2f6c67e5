"""The models of the literature, with random weights.

Linear models start from N(0, scale²); softmax models from N(0, 1/fan-in), where what enters the residual stream is divided
by √(2 layers), so that its size does not grow with the depth.
"""

from __future__ import annotations

from jax import Array

from mesascope.core import integer_at_least, split_keys

from ._around_embedding import Projected, RealForm, WithPositions
from ._context import Context
from ._embedding import BareTokens, Embedding, PairedTokens, TokenTable
from ._linear_attention_stack import LinearAttentionStack
from ._linear_self_attention import FactoredLinearSelfAttention, LinearSelfAttention
from ._looped import Looped
from ._mesa_layer import MesaLayer
from ._mlp import MLP
from ._normalizer import Normalizer
from ._positions import LearnedPositions
from ._prompt_embedding import InterleavedPrompt, StackedPrompt
from ._prompt_model import PromptModel
from ._readout import ComplexPairs, Dense, FirstBlock, LastEntry, NormedDense
from ._residual import PreNorm, Residual
from ._sequence_model import SequenceModel
from ._softmax_self_attention import SoftmaxSelfAttention
from ._stack import Stack


def linear_transformer(
    dim: int, layers: int, heads: int = 1, scale: float = 0.1, *, key: Array, normalizer: Normalizer = "t-1"
) -> SequenceModel:
    """Linear attention on paired tokens (0; x_t; x_{t−1}); ŷ_t is the first block of the last stream.

    One layer is `LinearAttention`. Source: zheng2024, section 3; vonoswald2024 (several layers).
    """
    keys = split_keys(key, integer_at_least("layers", layers, 1))
    drawn = [LinearSelfAttention.gaussian(3 * dim, heads, scale, key=k, normalizer=normalizer) for k in keys]
    return SequenceModel(PairedTokens(dim), LinearAttentionStack(drawn), FirstBlock(dim))


def factored_linear_transformer(
    dim: int,
    layers: int,
    heads: int = 1,
    scale: float = 0.1,
    *,
    key: Array,
    key_size: int | None = None,
    value_size: int | None = None,
    normalizer: Normalizer = "t-1",
) -> SequenceModel:
    """As `linear_transformer`, with weights W_K, W_Q, W_P, W_V; sizes left out are 3d."""
    keys = split_keys(key, integer_at_least("layers", layers, 1))
    drawn = [
        FactoredLinearSelfAttention.gaussian(
            3 * dim, heads, scale, key=k, key_size=key_size, value_size=value_size, normalizer=normalizer
        )
        for k in keys
    ]
    return SequenceModel(PairedTokens(dim), LinearAttentionStack(drawn), FirstBlock(dim))


def prompt_linear_transformer(
    dim: int,
    layers: int,
    heads: int = 1,
    scale: float = 0.1,
    *,
    key: Array,
    normalizer: Normalizer = "t-1",
    context: Context = "examples",
) -> PromptModel:
    """Linear attention on stacked prompts (x_i, y_i), (x_q, 0); ŷ = −(label entry of the query).

    Source: ahn2023, section 2; vonoswald2023, section 2.
    """
    stack = _prompt_stack(dim, layers, heads, scale, key, normalizer, context)
    return PromptModel(StackedPrompt(dim), stack, LastEntry(-1))


def looped_linear_transformer(
    dim: int,
    loops: int,
    layers: int = 1,
    heads: int = 1,
    scale: float = 0.1,
    *,
    key: Array,
    normalizer: Normalizer = "t-1",
    context: Context = "examples",
) -> PromptModel:
    """As `prompt_linear_transformer`, with its layers applied `loops` times.

    Source: gatmiry2024, section 2; vonoswald2023 (two looped layers).
    """
    stack = _prompt_stack(dim, layers, heads, scale, key, normalizer, context)
    return PromptModel(StackedPrompt(dim), Looped(stack, loops), LastEntry(-1))


def mesa_transformer(
    dim: int,
    layers: int = 1,
    heads: int = 1,
    scale: float = 0.1,
    *,
    key: Array,
    key_size: int | None = None,
    value_size: int | None = None,
    regularization: float = 1.0,
) -> SequenceModel:
    """Mesa layers on paired tokens; sizes left out are 3d. Source: vonoswald2024."""
    keys = split_keys(key, integer_at_least("layers", layers, 1))
    drawn = [
        MesaLayer.gaussian(
            3 * dim,
            heads,
            scale,
            key=k,
            key_size=key_size,
            value_size=value_size,
            regularization=regularization,
        )
        for k in keys
    ]
    return SequenceModel(PairedTokens(dim), LinearAttentionStack(drawn), FirstBlock(dim))


def transformer(
    dim: int,
    width: int,
    layers: int,
    heads: int,
    horizon: int,
    *,
    key: Array,
    complex_tokens: bool = False,
) -> SequenceModel:
    """A softmax transformer of continuous tokens: dense embedding, learned positions, pre-norm blocks, normed read-out.

    Complex tokens (`complex_tokens=True`) enter as (Re; Im) and leave as complex predictions.
    """
    real_dim = (1 + complex_tokens) * integer_at_least("dim", dim, 1)
    keys = split_keys(key, 3)
    embedding = _positioned(BareTokens(real_dim), width, horizon, keys[0])
    network = _blocks(width, layers, heads, keys[1])
    readout = NormedDense(Dense.gaussian(width, real_dim, key=keys[2]))
    if complex_tokens:
        return SequenceModel(RealForm(embedding), network, ComplexPairs(readout))
    return SequenceModel(embedding, network, readout)


def token_transformer(
    vocabulary: int, width: int, layers: int, heads: int, horizon: int, *, key: Array
) -> SequenceModel:
    """As `transformer`, for discrete tokens: a learned table of tokens, and logits for predictions."""
    keys = split_keys(key, 4)
    positions = LearnedPositions.gaussian(horizon, width, 0.1, key=keys[1])
    embedding = WithPositions(TokenTable.gaussian(vocabulary, width, key=keys[0]), positions)
    readout = NormedDense(Dense.gaussian(width, vocabulary, key=keys[3]))
    return SequenceModel(embedding, _blocks(width, layers, heads, keys[2]), readout)


def prompt_transformer(
    dim: int, width: int, layers: int, heads: int, examples: int, *, key: Array
) -> PromptModel:
    """As `transformer`, on interleaved prompts x_1, y_1, …, x_q of at most `examples` examples."""
    keys = split_keys(key, 3)
    horizon = 2 * integer_at_least("examples", examples, 0) + 1
    embedding = _positioned(InterleavedPrompt(dim), width, horizon, keys[0])
    readout = NormedDense(Dense.gaussian(width, 1, key=keys[2]))
    return PromptModel(embedding, _blocks(width, layers, heads, keys[1]), readout)


def _prompt_stack(
    dim: int, layers: int, heads: int, scale: float, key: Array, normalizer: Normalizer, context: Context
) -> LinearAttentionStack:
    keys = split_keys(key, integer_at_least("layers", layers, 1))
    return LinearAttentionStack(
        LinearSelfAttention.gaussian(dim + 1, heads, scale, key=k, normalizer=normalizer, context=context)
        for k in keys
    )


def _positioned(embedding: Embedding, width: int, horizon: int, key: Array) -> WithPositions:
    """A learned projection with learned positions, small beside the tokens."""
    key_weights, key_positions = split_keys(key)
    positions = LearnedPositions.gaussian(horizon, width, 0.1, key=key_positions)
    return WithPositions(Projected.gaussian(embedding, width, key=key_weights), positions)


def _blocks(width: int, layers: int, heads: int, key: Array) -> Stack:
    """Pre-norm blocks of softmax attention and an MLP four times as wide inside."""
    layers = integer_at_least("layers", layers, 1)
    gain = (2 * layers) ** -0.5
    blocks = []
    for key_layer in split_keys(key, layers):
        key_attention, key_mlp = split_keys(key_layer)
        attention = SoftmaxSelfAttention.gaussian(width, heads, key=key_attention, output_gain=gain)
        mlp = MLP.gaussian((width, 4 * width, width), key=key_mlp, output_gain=gain)
        blocks.append(Stack([Residual(PreNorm(attention)), Residual(PreNorm(mlp))]))
    return Stack(blocks)
