"""Models of all makes and the data that they read, and processes: partners of the contract between them."""

from typing import NamedTuple

from mesascope.core import named_key
from mesascope.models import (
    MLP,
    BareTokens,
    ComplexPairs,
    Dense,
    DiagonalSelfAttention,
    FactoredLinearAttention,
    FactoredLinearSelfAttention,
    FirstBlock,
    InterleavedPrompt,
    LastEntry,
    LayerNorm,
    LearnedPositions,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    MesaLayer,
    MultiHeadLinearAttention,
    NormedDense,
    OneHot,
    PairedTokens,
    PreNorm,
    Projected,
    PromptModel,
    RealForm,
    Residual,
    SequenceModel,
    SinusoidalPositions,
    SoftmaxSelfAttention,
    Stack,
    StackedPrompt,
    TokenTable,
    WithPositions,
    factored_linear_transformer,
    linear_transformer,
    looped_linear_transformer,
    mesa_transformer,
    preconditioned_linear_transformer,
    prompt_linear_transformer,
    prompt_transformer,
    step_size_transformer,
    token_transformer,
    transformer,
)
from mesascope.processes import (
    DiagonalUnitary,
    Gaussian,
    LinearAR,
    LinearRegression,
    MarkovTree,
    NonlinearAR,
    NonlinearRegression,
    OrthogonalAR,
    OrthonormalFeatures,
    RandomFeatures,
    RotationAR,
)

D, S, WIDTH = 2, 3, 4  # token dimension, symbols, width of softmax models
T, N, BATCH = 5, 2, 3  # horizon, examples, samples
SEEN = 3  # tokens that causality leaves as they are


class Data(NamedTuple):
    """The data of a process or model: tokens or prompts of a dimension, or a number of symbols."""

    kind: str
    size: int


class Entry(NamedTuple):
    """A builder of a model, and the kinds of data that the model reads."""

    build: object
    reads: tuple[Data, ...]


LINEAR = (Data("real", D), Data("complex", D))  # products of tokens: nothing in them is real
REAL, COMPLEX, SYMBOLS, PROMPTS = (
    (Data(kind, size),) for kind, size in (("real", D), ("complex", D), ("symbols", S), ("prompts", D))
)


def key(*names):
    return named_key(0, "contract", *names)


def attention(width, context="causal", heads=1):
    return LinearSelfAttention.gaussian(width, heads, 0.4, key=key("attention"), context=context)


def softmax(width, context="causal"):
    return SoftmaxSelfAttention.gaussian(width, 1, key=key("softmax"), context=context)


def mlp_block(width):
    return Residual(PreNorm(MLP.gaussian((width, 3, width), key=key("mlp"))))


def wide(embedding):
    return Projected.gaussian(embedding, WIDTH, key=key("embedding"))


def dense(width, out):
    return Dense.gaussian(width, out, key=key("readout"))


MODELS = {
    # one layer of linear attention, as the exact engine treats it
    "LinearAttention": Entry(lambda: LinearAttention.gaussian(D, 0.4, key=key()), LINEAR),
    "MultiHeadLinearAttention": Entry(
        lambda: MultiHeadLinearAttention.gaussian(D, 2, 0.4, key=key()), LINEAR
    ),
    "FactoredLinearAttention": Entry(lambda: FactoredLinearAttention.gaussian(D, 1, 0.4, key=key()), LINEAR),
    # builders of sequence models
    "linear_transformer": Entry(lambda: linear_transformer(D, 2, 2, 0.4, key=key()), LINEAR),
    "factored_linear_transformer": Entry(
        lambda: factored_linear_transformer(D, 1, 1, 0.4, key=key()), LINEAR
    ),
    "mesa_transformer": Entry(lambda: mesa_transformer(D, 1, 1, 0.4, key=key()), LINEAR),
    "transformer": Entry(lambda: transformer(D, WIDTH, 1, 1, T, key=key()), REAL),
    "transformer of complex tokens": Entry(
        lambda: transformer(D, WIDTH, 1, 1, T, key=key(), complex_tokens=True), COMPLEX
    ),
    "token_transformer": Entry(lambda: token_transformer(S, WIDTH, 1, 1, T, key=key()), SYMBOLS),
    # sequence models that are put together
    "bare tokens": Entry(lambda: SequenceModel(BareTokens(D), Residual(attention(D)), FirstBlock(D)), LINEAR),
    "looped": Entry(
        lambda: SequenceModel(
            PairedTokens(D), Looped(LinearAttentionStack([attention(3 * D)]), 2), FirstBlock(D)
        ),
        LINEAR,
    ),
    "looped softmax": Entry(
        lambda: SequenceModel(
            WithPositions(wide(BareTokens(D)), SinusoidalPositions(WIDTH)),
            Looped(Stack([Residual(PreNorm(softmax(WIDTH))), mlp_block(WIDTH)]), 2),
            NormedDense(dense(WIDTH, D)),
        ),
        REAL,
    ),
    "perceptrons": Entry(
        lambda: SequenceModel(
            BareTokens(D),
            Stack([MLP.gaussian((D, WIDTH), key=key("in")), LayerNorm.unit(WIDTH), mlp_block(WIDTH)]),
            dense(WIDTH, D),
        ),
        REAL,
    ),
    "real form": Entry(
        lambda: SequenceModel(
            RealForm(PairedTokens(2 * D)),
            LinearAttentionStack([attention(6 * D)]),
            ComplexPairs(FirstBlock(2 * D)),
        ),
        COMPLEX,
    ),
    "one-hot": Entry(
        lambda: SequenceModel(OneHot(S), LinearAttentionStack([attention(S)]), dense(S, S)), SYMBOLS
    ),
    "table": Entry(
        lambda: SequenceModel(
            Projected.gaussian(TokenTable.gaussian(S, 2, key=key("table")), WIDTH, key=key("embedding")),
            Stack([Residual(MesaLayer.gaussian(WIDTH, 1, 0.4, key=key("mesa"))), mlp_block(WIDTH)]),
            dense(WIDTH, S),
        ),
        SYMBOLS,
    ),
    # builders of prompt models
    "prompt_linear_transformer": Entry(lambda: prompt_linear_transformer(D, 2, 2, 0.4, key=key()), PROMPTS),
    "prompt_linear_transformer that sees all": Entry(
        lambda: prompt_linear_transformer(D, 1, 1, 0.4, key=key(), context="all"), PROMPTS
    ),
    "prompt_linear_transformer, causal": Entry(
        lambda: prompt_linear_transformer(D, 2, 1, 0.4, key=key(), context="causal"), PROMPTS
    ),
    "looped_linear_transformer": Entry(
        lambda: looped_linear_transformer(D, 2, 1, 1, 0.4, key=key()), PROMPTS
    ),
    "preconditioned_linear_transformer": Entry(
        lambda: preconditioned_linear_transformer(D, 2, 1, 0.4, key=key()), PROMPTS
    ),
    "step_size_transformer": Entry(lambda: step_size_transformer(D, 2, 1, 0.4, key=key()), PROMPTS),
    "prompt_transformer": Entry(lambda: prompt_transformer(D, WIDTH, 1, 1, N, key=key()), PROMPTS),
    # prompt models that are put together
    "interleaved": Entry(
        lambda: PromptModel(
            InterleavedPrompt(D), LinearAttentionStack([attention(D + 1), attention(D + 1)]), LastEntry()
        ),
        PROMPTS,
    ),
    "stacked softmax": Entry(
        lambda: PromptModel(
            wide(StackedPrompt(D)),
            Stack([Residual(softmax(WIDTH, "examples")), mlp_block(WIDTH)]),
            dense(WIDTH, 1),
        ),
        PROMPTS,
    ),
    "stacked with positions": Entry(
        lambda: PromptModel(
            WithPositions(
                StackedPrompt(D), LearnedPositions.gaussian(N + 1, D + 1, 0.5, key=key("positions"))
            ),
            Residual(
                FactoredLinearSelfAttention.gaussian(D + 1, 1, 0.4, key=key("factors"), context="examples")
            ),
            LastEntry(),
        ),
        PROMPTS,
    ),
    "stacked diagonal": Entry(
        lambda: PromptModel(
            StackedPrompt(D),
            LinearAttentionStack(
                DiagonalSelfAttention.gaussian((D, 1), 0.5, key=key(name)) for name in ("one", "two")
            ),
            LastEntry(),
        ),
        PROMPTS,
    ),
    "stacked mesa": Entry(
        lambda: PromptModel(
            StackedPrompt(D),
            LinearAttentionStack(MesaLayer.gaussian(D + 1, 1, 0.5, key=key(name)) for name in ("one", "two")),
            LastEntry(1),
        ),
        PROMPTS,
    ),
}

PROCESSES = {
    "diagonal-unitary": DiagonalUnitary(Gaussian(), D),
    "orthogonal": OrthogonalAR(Gaussian(), D, noise=0.1),
    "rotation": RotationAR(Gaussian(), D),
    "linear": LinearAR(Gaussian(), 3, (0.9, (-0.5, 0.5), 0.7), noise=0.1, observed=D),
    "nonlinear": NonlinearAR(Gaussian(), D, hidden=3),
    "markov-tree": MarkovTree.chain(T - 1, S, 1.0),
    "linear-regression": LinearRegression(D, noise=0.1),
    "nonlinear-regression": NonlinearRegression(D, RandomFeatures(4)),
    "features": OrthonormalFeatures(D),
    # of a size that no model here has
    "large diagonal-unitary": DiagonalUnitary(Gaussian(), D + 1),
    "large orthogonal": OrthogonalAR(Gaussian(), D + 1),
    "large markov-tree": MarkovTree.chain(T - 1, S + 1, 1.0),
    "small markov-tree": MarkovTree.chain(T - 1, S - 1, 1.0),
    "large linear-regression": LinearRegression(D + 1),
}
