"""Sequence and prompt models: the tokens they depend on, their predictions, and the agreement of all calls."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    BareTokens,
    ComplexPairs,
    Dense,
    FirstBlock,
    InterleavedPrompt,
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    PairedTokens,
    Projected,
    PromptModel,
    RealForm,
    SequenceModel,
    StackedPrompt,
    factored_linear_transformer,
    linear_transformer,
    looped_linear_transformer,
    mesa_transformer,
    prompt_linear_transformer,
    prompt_transformer,
    token_transformer,
    transformer,
)

KEY = jax.random.key(0)
HORIZON, EXAMPLES = 5, 3

SEQUENCE = {
    "linear": (lambda: linear_transformer(2, 2, 2, 0.4, key=KEY), "real", 2),
    "complex linear": (lambda: linear_transformer(2, 1, 1, 0.4, key=KEY, normalizer="t"), "complex", 2),
    "factored": (
        lambda: factored_linear_transformer(2, 2, 1, 0.4, key=KEY, key_size=2, value_size=3),
        "real",
        2,
    ),
    "mesa": (lambda: mesa_transformer(2, 1, 2, 0.4, key=KEY, key_size=2, value_size=3), "real", 2),
    "looped": (
        lambda: SequenceModel(
            PairedTokens(2), Looped(linear_transformer(2, 1, 1, 0.4, key=KEY).network, 2), FirstBlock(2)
        ),
        "real",
        2,
    ),
    "softmax": (lambda: transformer(2, 4, 1, 2, HORIZON, key=KEY), "real", 2),
    "complex softmax": (
        lambda: transformer(2, 4, 1, 2, HORIZON, key=KEY, complex_tokens=True),
        "complex",
        2,
    ),
    "discrete": (lambda: token_transformer(3, 4, 1, 2, HORIZON, key=KEY), "discrete", 3),
}
PROMPT = {
    "linear": lambda: prompt_linear_transformer(2, 2, 2, 0.4, key=KEY),
    "linear that sees all": lambda: prompt_linear_transformer(2, 1, 1, 0.4, key=KEY, context="all"),
    "looped": lambda: looped_linear_transformer(2, 3, 2, 1, 0.4, key=KEY),
    "softmax": lambda: prompt_transformer(2, 4, 1, 2, EXAMPLES, key=KEY),
}


def draw(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "discrete":
        return rng.integers(0, 3, shape[:-1])
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if kind == "complex" else real


@functools.cache
def sequence_model(name):
    return SEQUENCE[name][0]()


@functools.cache
def prompt_model(name):
    return PROMPT[name]()


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEQUENCE)
def test_predictions_depend_on_previous_tokens_only(name, compilations):
    _, kind, out = SEQUENCE[name]
    model, tokens, other = (
        sequence_model(name),
        draw(kind, (3, HORIZON, 2)),
        draw(kind, (3, HORIZON, 2), seed=1),
    )
    predictions = np.asarray(model.predictions(tokens))
    assert predictions.shape == (3, HORIZON - 1, out)
    assert np.iscomplexobj(predictions) == (kind == "complex")
    for t in (2, HORIZON):
        assert_close(model(tokens[:, :t]), predictions[:, t - 2])
    changed = np.array(tokens)
    changed[:, 3:] = other[:, 3:]
    assert np.any(changed != tokens)
    moved = np.asarray(model.predictions(changed))
    np.testing.assert_array_equal(moved[:, :2], predictions[:, :2])
    assert not np.allclose(moved[:, 2:], predictions[:, 2:])
    with compilations() as made:
        jax.block_until_ready(model.predictions(other))
    assert not made


@pytest.mark.slow
@pytest.mark.parametrize("name", SEQUENCE)
def test_sequence_models_under_jax(name):
    _, kind, _ = SEQUENCE[name]
    model, tokens = sequence_model(name), draw(kind, (3, HORIZON, 2))
    expected = model.predictions(tokens)
    mapped = jax.jit(jax.vmap(lambda m, x: m.predictions(x), (None, 0)))
    assert_close(mapped(model, tokens), expected)
    assert_close(model.predictions(tokens[0]), expected[0])
    slopes = jax.jit(jax.grad(lambda m: jnp.sum(jnp.abs(m.predictions(tokens)) ** 2)))(model)
    for slope in jax.tree.leaves(slopes):
        assert np.isfinite(slope).all()
    assert any(np.any(slope) for slope in jax.tree.leaves(slopes))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMPT)
def test_prompt_predictions_are_those_of_every_prefix(name):
    model, x = prompt_model(name), draw("real", (3, EXAMPLES + 1, 2))
    y, other = draw("real", (3, EXAMPLES)), draw("real", (3, EXAMPLES), seed=1)
    predictions = np.asarray(model.predictions(x, y))
    assert predictions.shape == (3, EXAMPLES + 1)
    for t in range(EXAMPLES + 1):
        assert_close(model(x[:, : t + 1], y[:, :t]), predictions[:, t])
    moved = np.asarray(model.predictions(x, np.concatenate([y[:, :2], other[:, 2:]], 1)))
    np.testing.assert_array_equal(moved[:, :3], predictions[:, :3])
    assert not np.isclose(moved[:, 3:], predictions[:, 3:]).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMPT)
def test_prompt_models_under_jax(name):
    model, x, y = prompt_model(name), draw("real", (3, EXAMPLES + 1, 2)), draw("real", (3, EXAMPLES))
    expected = model(x, y)
    assert_close(jax.jit(jax.vmap(lambda m, x, y: m(x, y), (None, 0, 0)))(model, x, y), expected)
    assert_close(model(x[0], y[0]), expected[0])
    slopes = jax.tree.leaves(jax.jit(jax.grad(lambda m: jnp.sum(m(x, y) ** 2)))(model))
    assert all(np.isfinite(slope).all() for slope in slopes)
    assert any(np.any(slope) for slope in slopes)


@pytest.mark.parametrize("name", ["linear", "linear that sees all", "looped"])
def test_the_order_of_stacked_examples_does_not_matter(name):
    model, x, y = prompt_model(name), draw("real", (3, EXAMPLES + 1, 2)), draw("real", (3, EXAMPLES))
    order = [2, 0, 1]
    assert_close(model(x[:, [*order, EXAMPLES]], y[:, order]), model(x, y))
    assert not np.isclose(model(x[:, [EXAMPLES, 1, 2, 0]], y), model(x, y)).any()


def test_a_linear_model_without_examples_predicts_zero():
    model = prompt_linear_transformer(2, 2, scale=0.4, key=KEY)
    np.testing.assert_array_equal(model(draw("real", (3, 1, 2)), np.zeros((3, 0))), np.zeros(3))


def test_one_gradient_step_on_stacked_prompts():
    rng = np.random.default_rng(2)
    A, x, y = rng.normal(size=(3, 3)), rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 5))
    w_kq, w_pv = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
    w_kq[0, :3, :3], w_pv[0, 3, 3] = -A, 1
    network = LinearAttentionStack([LinearSelfAttention(w_kq, w_pv, "t-1", "examples")])
    model = PromptModel(StackedPrompt(3), network, LastEntry(-1))
    # ahn2023: ŷ = w·x_q after w ← 0 − A ∇R(0), R(w) = (1/2n) Σ (w·x_i − y_i)²
    step = np.einsum("jk,bik,bi->bj", A.T, x[:, :5], y) / 5
    assert_close(model(x, y), np.einsum("bj,bj->b", step, x[:, 5]))
    added = PromptModel(StackedPrompt(3), network, LastEntry(1))
    assert_close(added(x, y), -model(x, y))


def test_complex_attention_is_real_attention_on_pairs():
    rng = np.random.default_rng(3)
    w_pv = rng.normal(size=(2, 2, 2)) + 1j * rng.normal(size=(2, 2, 2))
    w_kq = rng.normal(size=(2, 2, 2)) + 1j * rng.normal(size=(2, 2, 2))
    tokens = draw("complex", (3, HORIZON, 2))
    model = SequenceModel(BareTokens(2), LinearSelfAttention(w_kq, w_pv, "t"), FirstBlock(2))

    def real(matrix):
        return np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])

    # a complex score z_i* K z_t is a pair of real ones, that of K and that of −i K: two real heads for each complex one
    heads = [
        (real(k * s), real(p * c)) for k, p in zip(w_kq, w_pv, strict=True) for s, c in ((1, 1), (-1j, 1j))
    ]
    pairs = LinearSelfAttention(*(np.stack(weights) for weights in zip(*heads, strict=True)), "t")
    real_model = SequenceModel(RealForm(BareTokens(4)), pairs, ComplexPairs(FirstBlock(4)))
    assert_close(real_model.predictions(tokens), model.predictions(tokens))


@pytest.mark.slow
def test_loops_are_chosen_at_call_time():
    layer = linear_transformer(2, 1, 1, 0.4, key=KEY).network
    looped = SequenceModel(PairedTokens(2), Looped(layer, 2), FirstBlock(2))
    copies = SequenceModel(PairedTokens(2), LinearAttentionStack(layer.layers * 4), FirstBlock(2))
    tokens = draw("real", (3, HORIZON, 2))
    assert_close(looped.predictions(tokens, loops=4), copies.predictions(tokens))
    assert_close(looped(tokens, loops=4), copies(tokens))
    prompts = looped_linear_transformer(2, 1, 1, 1, 0.4, key=KEY)
    deep = PromptModel(prompts.embedding, LinearAttentionStack(prompts.network.layer.layers * 3), LastEntry())
    x, y = draw("real", (3, 3, 2)), draw("real", (3, 2))
    assert_close(prompts.predictions(x, y, loops=3), deep.predictions(x, y))
    assert_close(prompts(x, y, loops=3), deep(x, y))


def test_projected_prompts_and_dense_readouts():
    rng = np.random.default_rng(4)
    widen, layer = rng.normal(size=(4, 3)), LinearSelfAttention.gaussian(4, 1, 0.5, key=KEY)
    network, readout = LinearAttentionStack([layer]), Dense(rng.normal(size=(1, 4)), [0.5])
    model = PromptModel(Projected(InterleavedPrompt(2), widen), network, readout)
    x, y = draw("real", (3, 3, 2)), draw("real", (3, 2))
    stream = np.asarray(InterleavedPrompt(2)(x, y)) @ widen.T
    expected = np.asarray(network(stream))[:, ::2] @ np.asarray(readout.weights)[0] + 0.5
    assert_close(model.predictions(x, y), expected)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        (transformer(2, 4, 1, 1, HORIZON, key=KEY), np.zeros((3, 0, 2))),
        (linear_transformer(2, 1, key=KEY), np.zeros((0, 2))),
        (token_transformer(3, 4, 1, 1, HORIZON, key=KEY), np.zeros((3, 0), int)),
    ],
)
def test_contexts_without_tokens_are_refused(model, tokens):
    for ask in (model, model.predictions):
        with pytest.raises(ValueError, match=r"^tokens: a context needs at least 2 tokens, got none: shape"):
            ask(tokens)
