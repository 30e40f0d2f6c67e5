"""Input that layers, embeddings and read-outs refuse, in one line that says what, where and the fix."""

import jax
import numpy as np
import pytest

from mesascope.models import (
    MLP,
    BareTokens,
    ComplexPairs,
    Dense,
    FactoredLinearSelfAttention,
    FirstBlock,
    InterleavedPrompt,
    LastEntry,
    LayerNorm,
    LearnedPositions,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    LowRankLinearSelfAttention,
    MesaLayer,
    NormedDense,
    OneHot,
    PairedTokens,
    PreNorm,
    Projected,
    RealForm,
    Residual,
    SinusoidalPositions,
    SoftmaxSelfAttention,
    Stack,
    StackedPrompt,
    TokenTable,
    WithPositions,
    prompt_linear_transformer,
)
from models.refused import KEY, LINEAR, PROMPT, W, X, Y

NARROWING = LinearSelfAttention(W, W[:, :2])
FACTORS = {"w_k": W, "w_q": W, "w_p": W, "w_v": W}
SOFTMAX = SoftmaxSelfAttention(**FACTORS)


REFUSED = {
    # layers
    "w_kq of another width": (
        lambda: LinearSelfAttention(np.ones((1, 2, 2)), W),
        ValueError,
        r"expected w_kq \(heads, width, width\) and w_pv \(heads, out, width\), got \(1, 2, 2\) and \(1, 3, 3\)",
    ),
    "w_kq of other heads": (
        lambda: LinearSelfAttention(np.ones((2, 3, 3)), W),
        ValueError,
        "weights do not fit",
    ),
    "no heads": (lambda: LinearSelfAttention(W[0], W), ValueError, "w_kq: expected 3 axes"),
    "zero heads": (
        lambda: LinearSelfAttention(W[:0], W),
        ValueError,
        "w_kq: every axis must have at least one",
    ),
    "nan weights": (
        lambda: LinearSelfAttention(np.nan * W, W),
        ValueError,
        "w_kq: every entry must be finite",
    ),
    "unknown context": (
        lambda: LinearSelfAttention(W, W, context="past"),
        ValueError,
        "context: 'past' is unknown; use one of causal, all, examples",
    ),
    "unknown normalizer": (lambda: LinearSelfAttention(W, W, "n"), ValueError, "normalizer: 'n' is unknown"),
    "gaussian of width 0": (
        lambda: LinearSelfAttention.gaussian(0, 1, 1, key=KEY),
        ValueError,
        "width must be",
    ),
    "gaussian of scale 0": (
        lambda: MesaLayer.gaussian(2, 1, 0, key=KEY),
        ValueError,
        "scale must be greater",
    ),
    "factors that do not fit": (
        lambda: FactoredLinearSelfAttention(**{**FACTORS, "w_v": np.ones((1, 2, 3))}),
        ValueError,
        r"got w_k \(1, 3, 3\), .* w_v \(1, 2, 3\); expected w_k and w_q \(heads, key, width\)",
    ),
    "low-rank weights that do not fit": (
        lambda: LowRankLinearSelfAttention(w_k=np.ones((1, 1, 3)), w_q=np.ones((1, 2, 3)), w_pv=W),
        ValueError,
        r"weights do not fit: expected w_k and w_q \(heads, rank, width\), .* got \(1, 1, 3\), \(1, 2, 3\)",
    ),
    "a rank above the width": (
        lambda: LowRankLinearSelfAttention.gaussian(2, 1, 0.1, key=KEY, rank=3),
        ValueError,
        "rank: must be at most the width 2 of the tokens, got 3; take a smaller rank",
    ),
    "a rank above the dimension": (
        lambda: prompt_linear_transformer(2, 1, key=KEY, rank=3),
        ValueError,
        "rank: must be at most dim = 2, the number of directions of the inputs, got 3; take a smaller rank",
    ),
    "negative regularization": (
        lambda: MesaLayer(**FACTORS, regularization=-1.0),
        ValueError,
        "regularization must be greater than 0, got -1.0",
    ),
    "complex softmax": (
        lambda: SoftmaxSelfAttention(**{**FACTORS, "w_q": 1j * W}),
        TypeError,
        "w_q: must be real, got complex128",
    ),
    "heads that do not divide": (
        lambda: SoftmaxSelfAttention.gaussian(4, 3, key=KEY),
        ValueError,
        "width 4 is not a multiple of 3 heads; give key_size and value_size",
    ),
    "stream of another width": (
        lambda: LINEAR(np.ones((2, 5, 4))),
        ValueError,
        r"LinearSelfAttention: expected a stream of shape \(…, n, 3\) with n ≥ 1, got \(2, 5, 4\)",
    ),
    "a token for a stream": (lambda: LINEAR(np.ones(3)), ValueError, "expected a stream of shape"),
    "normalizer that vanishes": (
        lambda: LinearSelfAttention(W, W, lambda t: t - 2.0)(np.ones((5, 3))),
        ValueError,
        "normalizer: ρ_t must be finite and positive, but is -1.0 at t = 1",
    ),
    "normalizer that vanishes later": (
        lambda: LinearSelfAttention(W, W, lambda t: (t - 1.0) * (t - 3.0) ** 2)(np.ones((5, 3))),
        ValueError,
        "but is 0.0 at t = 3",
    ),
    "complex stream in softmax": (
        lambda: SOFTMAX(1j * np.ones((5, 3))),
        TypeError,
        "SoftmaxSelfAttention: needs real streams, got complex128; embed complex tokens with RealForm",
    ),
    "complex stream in a norm": (lambda: LayerNorm.unit(3)(1j * np.ones((5, 3))), TypeError, "RealForm"),
    "norm of two shapes": (lambda: LayerNorm(np.ones(3), np.ones(2)), ValueError, r"got \(3,\) and \(2,\)"),
    "mlp that does not chain": (
        lambda: MLP([np.ones((4, 3)), np.ones((2, 5))], [np.ones(4), np.ones(2)]),
        ValueError,
        r"expected weights \(w_1, w_0\), .* got \[\(4, 3\), \(2, 5\)\]",
    ),
    "mlp of other biases": (lambda: MLP([W[0]], [np.ones(2)]), ValueError, "MLP: shapes do not fit"),
    "mlp of no layer": (lambda: MLP([], []), ValueError, "MLP: shapes do not fit"),
    "mlp of one width": (lambda: MLP.gaussian([3], key=KEY), ValueError, "needs at least two"),
    "unknown activation": (
        lambda: MLP([W[0]], [W[0, 0]], "tanh"),
        ValueError,
        "'tanh' is unknown; use one of gelu",
    ),
    "residual of two widths": (
        lambda: Residual(NARROWING),
        ValueError,
        "Residual: LinearSelfAttention maps width 3 to 2, but the two must be equal",
    ),
    "residual of no layer": (lambda: Residual(np.tanh), TypeError, "Residual: .* is not a layer"),
    "norm of another width": (
        lambda: PreNorm(LINEAR, LayerNorm.unit(2)),
        ValueError,
        "PreNorm: the norm has width 2, what follows it 3",
    ),
    "norm of another kind": (lambda: PreNorm(LINEAR, LINEAR), TypeError, "norm must be a LayerNorm"),
    "stack of nothing": (lambda: Stack([]), ValueError, "Stack: needs at least one layer, got none"),
    "stack that does not chain": (
        lambda: Stack([NARROWING, LINEAR]),
        ValueError,
        "Stack: layer 0 gives width 2, layer 1 takes 3",
    ),
    "linear stack of nothing": (lambda: LinearAttentionStack([]), ValueError, "needs at least one layer"),
    "linear stack of softmax": (lambda: LinearAttentionStack([SOFTMAX]), TypeError, "use Stack and Residual"),
    "linear stack of stacks": (
        lambda: LinearAttentionStack([LinearAttentionStack([LINEAR])]),
        TypeError,
        "is not linear attention",
    ),
    "linear stack of two widths": (
        lambda: LinearAttentionStack([LINEAR, LinearSelfAttention(W[:, :2, :2], W[:, :2, :2])]),
        ValueError,
        "all layers must have one width, got 3 and 2",
    ),
    "linear stack that narrows": (lambda: LinearAttentionStack([NARROWING]), ValueError, "maps width 3 to 2"),
    "loop of two widths": (
        lambda: Looped(NARROWING, 2),
        ValueError,
        "Looped: LinearSelfAttention maps width 3 to 2",
    ),
    "no loops": (lambda: Looped(LINEAR, 0), ValueError, "loops must be at least 1, got 0"),
    "half a loop": (
        lambda: Looped(LINEAR, 2)(np.ones((5, 3)), loops=1.5),
        TypeError,
        "loops must be an integer",
    ),
    # embeddings
    "tokens of another dim": (
        lambda: PairedTokens(3)(np.ones((4, 5, 2))),
        ValueError,
        r"PairedTokens: expected tokens of shape \(…, T, 3\), got float64 \(4, 5, 2\)$",
    ),
    "discrete tokens for continuous ones": (
        lambda: BareTokens(3)(np.ones((4, 5), int)),
        ValueError,
        "discrete tokens need OneHot or TokenTable",
    ),
    "continuous tokens for discrete ones": (
        lambda: OneHot(3)(np.ones((4, 5, 3))),
        TypeError,
        "OneHot: tokens must be integers, got float64; continuous tokens need BareTokens or PairedTokens",
    ),
    "symbol too large": (lambda: TokenTable(W[0])([[0, 3]]), ValueError, "tokens must be in 0 … 2, got 3"),
    "symbol too small": (lambda: OneHot(3)([[-1, 3]]), ValueError, "tokens must be in 0 … 2, got -1"),
    "one symbol": (lambda: OneHot(3)(1), ValueError, "got a single number"),
    "projection that does not fit": (
        lambda: Projected(PairedTokens(2), W[0]),
        ValueError,
        r"Projected: weights must be \(width, 6\), got \(3, 3\)",
    ),
    "projection of no embedding": (lambda: Projected(LINEAR, W[0]), TypeError, "is not an embedding"),
    "positions of another width": (
        lambda: WithPositions(BareTokens(2), SinusoidalPositions(3)),
        ValueError,
        "the positions have width 3, the embedding 2",
    ),
    "positions of another kind": (
        lambda: WithPositions(BareTokens(2), np.ones((3, 2))),
        TypeError,
        "positions must be LearnedPositions or SinusoidalPositions",
    ),
    "stream longer than its positions": (
        lambda: LearnedPositions(np.ones((4, 3)))(np.ones((5, 3))),
        ValueError,
        "the stream has 5 tokens, but positions are learned for 4",
    ),
    "real form of real tokens": (
        lambda: RealForm(BareTokens(4))(np.ones((5, 2))),
        TypeError,
        "RealForm: tokens must be complex .* real tokens need BareTokens alone",
    ),
    "real form of prompts": (lambda: RealForm(StackedPrompt(4)), TypeError, "StackedPrompt embeds prompts"),
    "labels with the target": (
        lambda: PROMPT(X, np.ones((4, 3))),
        ValueError,
        r"y must hold a label for each of the 2 examples before the query, got x \(4, 3, 2\) and y \(4, 3\)",
    ),
    "inputs of another dim": (
        lambda: InterleavedPrompt(3)(X, Y),
        ValueError,
        r"InterleavedPrompt: expected x of shape \(…, N \+ 1, 3\), got \(4, 3, 2\)",
    ),
    # read-outs
    "sign of a half": (lambda: LastEntry(0.5), ValueError, "sign must be -1 or \\+1, got 0.5"),
    "bias that does not fit": (
        lambda: Dense(W[0], np.ones(2)),
        ValueError,
        r"bias must be \(3,\) like the weights, got \(2,\)",
    ),
    "complex weights behind a norm": (
        lambda: NormedDense(Dense(1j * W[0])),
        TypeError,
        "weights: must be real",
    ),
    "norm before something else": (lambda: NormedDense(FirstBlock(2)), TypeError, "dense must be a Dense"),
    "pairs of an odd number": (
        lambda: ComplexPairs(FirstBlock(3)),
        ValueError,
        "needs an even number of entries, the read-out gives 3",
    ),
    "pairs of nothing": (lambda: ComplexPairs(3), TypeError, "ComplexPairs: int is not a read-out"),
    "pairs of complex numbers": (
        lambda: ComplexPairs(FirstBlock(2))(1j * np.ones((5, 2))),
        TypeError,
        "complex128; use it without ComplexPairs",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, refused_in_one_line):
    refused_in_one_line(*REFUSED[case])


@pytest.mark.parametrize("layer", ["linear", "softmax", "mlp"])
def test_an_empty_batch_is_refused(layer):
    key = jax.random.key(0)
    made = {
        "linear": lambda: LinearSelfAttention.gaussian(4, 1, 0.1, key=key),
        "softmax": lambda: SoftmaxSelfAttention.gaussian(4, 2, key=key),
        "mlp": lambda: MLP.gaussian((4, 8, 4), key=key),
    }[layer]()
    with pytest.raises(ValueError, match="batch is empty"):
        made(np.zeros((0, 5, 4), np.float32))
