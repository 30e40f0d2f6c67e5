"""Input that models and builders refuse, and seeds for keys, in one line that says what, where and the fix."""

import numpy as np
import pytest

from mesascope.models import (
    MLP,
    Dense,
    DiagonalSelfAttention,
    FactoredLinearAttention,
    FactoredLinearSelfAttention,
    FirstBlock,
    LastEntry,
    LearnedPositions,
    LinearAttention,
    LinearSelfAttention,
    LowRankLinearSelfAttention,
    MesaLayer,
    MultiHeadLinearAttention,
    NormedDense,
    PairedTokens,
    Projected,
    PromptModel,
    Residual,
    SequenceModel,
    SoftmaxSelfAttention,
    Stack,
    StackedPrompt,
    TokenTable,
    factored_linear_transformer,
    linear_transformer,
    looped_linear_transformer,
    mesa_transformer,
    prompt_linear_transformer,
    prompt_transformer,
    token_transformer,
    transformer,
)
from models.refused import KEY, LINEAR, PROMPT, W, X, Y

ALL = LinearSelfAttention(W, W, context="all")
SEQUENCE = SequenceModel(PairedTokens(1), LINEAR, FirstBlock(1))


REFUSED = {
    # models
    "embedding of another width": (
        lambda: SequenceModel(PairedTokens(2), LINEAR, FirstBlock(2)),
        ValueError,
        "SequenceModel: the embedding gives width 6, the network takes 3; make them equal",
    ),
    "read-out that is too wide": (
        lambda: SequenceModel(PairedTokens(1), LINEAR, FirstBlock(4)),
        ValueError,
        "FirstBlock: reads 4 entries, the network gives width 3",
    ),
    "read-out of another width": (
        lambda: SequenceModel(PairedTokens(1), LINEAR, NormedDense(Dense(np.ones((1, 2))))),
        ValueError,
        "Dense: weights take width 2, the network gives width 3",
    ),
    "network of another kind": (
        lambda: SequenceModel(PairedTokens(1), W, FirstBlock(1)),
        TypeError,
        "not a layer",
    ),
    "read-out of another kind": (
        lambda: SequenceModel(PairedTokens(1), LINEAR, 1),
        TypeError,
        "not a read-out",
    ),
    "prompts for tokens": (
        lambda: SequenceModel(StackedPrompt(2), LINEAR, FirstBlock(2)),
        TypeError,
        "StackedPrompt embeds prompts; use PromptModel",
    ),
    "network that sees the future": (
        lambda: SequenceModel(PairedTokens(1), Stack([Residual(ALL)]), FirstBlock(1)),
        ValueError,
        "the network sees the tokens to predict; make its layers context='causal'",
    ),
    "tokens for prompts": (
        lambda: PromptModel(PairedTokens(1), LINEAR, LastEntry()),
        TypeError,
        "PairedTokens embeds tokens; use SequenceModel",
    ),
    "labels of two entries": (
        lambda: PromptModel(StackedPrompt(2), LINEAR, FirstBlock(2)),
        ValueError,
        "a label is one number, the read-out gives 2",
    ),
    "one token": (
        lambda: SEQUENCE(np.ones((4, 1, 1))),
        ValueError,
        "a context needs at least 2 tokens, got 1",
    ),
    "one token of many predictions": (
        lambda: SEQUENCE.predictions(np.ones((1, 1))),
        ValueError,
        "at least 2 tokens",
    ),
    "loops of what is not looped": (
        lambda: SEQUENCE(np.ones((4, 2, 1)), loops=3),
        TypeError,
        r"loops: a LinearSelfAttention is not looped; remove loops or make it Looped\(layer, loops\)",
    ),
    "loops of prompts": (lambda: PROMPT.predictions(X, Y, loops=3), TypeError, "is not looped"),
    # builders
    "no layers": (lambda: linear_transformer(2, 0, key=KEY), ValueError, "layers must be at least 1"),
    "too many layers": (
        lambda: prompt_linear_transformer(2, 10**9, key=KEY),
        ValueError,
        "layers must be at most 1024",
    ),
    "dimension that no memory holds": (
        lambda: prompt_linear_transformer(10**9, 1, key=KEY),
        ValueError,
        "prompt_linear_transformer dim must be at most 1024",
    ),
    "weights that no memory holds": (
        lambda: transformer(2, 65536, 1, 2, 5, key=KEY),
        ValueError,
        "transformer: the weights take 384 GiB, more than 4; take smaller sizes",
    ),
    "text for yes or no": (
        lambda: transformer(2, 4, 1, 2, 5, complex_tokens="yes", key=KEY),
        TypeError,
        "transformer complex_tokens must be",
    ),
    "fields that do not fit together": (
        lambda: prompt_linear_transformer(
            2, 1, heads=2, key=KEY, start={"kind": "gradient-descent", "step_sizes": [1]}
        ),
        ValueError,
        "prompt_linear_transformer heads must be 1 if start",
    ),
    "no blocks": (lambda: transformer(2, 4, 0, 2, 5, key=KEY), ValueError, "layers must be at least 1"),
    "complex tokens in a real transformer": (
        lambda: transformer(2, 4, 1, 2, 5, key=KEY)(1j * np.ones((3, 5, 2))),
        TypeError,
        "RealForm",
    ),
    "more examples than positions": (
        lambda: prompt_transformer(2, 4, 1, 2, 1, key=KEY)(X, Y),
        ValueError,
        "has 5 tokens, but positions are learned for 3",
    ),
    "builder without loops": (
        lambda: looped_linear_transformer(2, 0, key=KEY),
        ValueError,
        "loops must be at least",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, refused_in_one_line):
    refused_in_one_line(*REFUSED[case])


KEYLESS = {
    "linear": lambda key: linear_transformer(2, 1, key=key),
    "factored": lambda key: factored_linear_transformer(2, 1, key=key),
    "prompts": lambda key: prompt_linear_transformer(2, 1, key=key),
    "looped": lambda key: looped_linear_transformer(2, 2, key=key),
    "mesa": lambda key: mesa_transformer(2, key=key),
    "softmax": lambda key: transformer(2, 4, 1, 2, 5, key=key),
    "symbols": lambda key: token_transformer(3, 4, 1, 2, 5, key=key),
    "interleaved": lambda key: prompt_transformer(2, 4, 1, 2, 1, key=key),
    "LinearAttention": lambda key: LinearAttention.gaussian(2, 0.1, key=key),
    "MultiHeadLinearAttention": lambda key: MultiHeadLinearAttention.gaussian(2, 2, 0.1, key=key),
    "FactoredLinearAttention": lambda key: FactoredLinearAttention.gaussian(2, 1, 0.1, key=key),
    "LinearSelfAttention": lambda key: LinearSelfAttention.gaussian(3, 1, 0.1, key=key),
    "FactoredLinearSelfAttention": lambda key: FactoredLinearSelfAttention.gaussian(3, 1, 0.1, key=key),
    "LowRankLinearSelfAttention": lambda key: LowRankLinearSelfAttention.gaussian(3, 1, 0.1, key=key),
    "DiagonalSelfAttention": lambda key: DiagonalSelfAttention.gaussian((2, 1), 0.1, key=key),
    "SoftmaxSelfAttention": lambda key: SoftmaxSelfAttention.gaussian(4, 2, key=key),
    "MesaLayer": lambda key: MesaLayer.gaussian(3, 1, 0.1, key=key),
    "MLP": lambda key: MLP.gaussian((4, 8, 4), key=key),
    "Dense": lambda key: Dense.gaussian(3, 1, key=key),
    "TokenTable": lambda key: TokenTable.gaussian(3, 4, key=key),
    "LearnedPositions": lambda key: LearnedPositions.gaussian(5, 4, 0.1, key=key),
    "Projected": lambda key: Projected.gaussian(StackedPrompt(2), 4, key=key),
}


@pytest.mark.parametrize("name", KEYLESS)
def test_a_seed_instead_of_a_key_is_refused(name):
    with pytest.raises(TypeError, match=r"^key must be a random key such as jax\.random\.key\(0\), got 0$"):
        KEYLESS[name](0)


def test_a_normalizer_may_be_a_function():
    model = linear_transformer(2, 1, key=KEY, normalizer=lambda t: 2.0 * t)
    assert model.network.layers[0].normalizer(3) == 6.0
