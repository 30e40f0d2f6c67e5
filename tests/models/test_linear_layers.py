"""Linear attention layers and their stacks, compared with the definition in double loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    FactoredLinearSelfAttention,
    FirstBlock,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    LowRankLinearSelfAttention,
    MultiHeadLinearAttention,
    PairedTokens,
    Residual,
    SequenceModel,
    Stack,
)

# Sums of some hundred products of numbers of order one, through up to three layers.
RTOL = 1e-11
CONTEXTS = ["causal", "all", "examples"]


def slow_growth(t):
    return 1 + np.sqrt(t) / 3


RHO = {"t-1": lambda t: t - 1, "t": lambda t: t, "1": lambda t: 1, slow_growth: slow_growth}


def draw(rng, shape, kind="real"):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if kind == "complex" else real


def definition(w_kq, w_pv, normalizer, context, stream):
    """(1/ρ_t) Σ_h W^PV_h (Σ_i z_i z_i*) W^KQ_h z_t for every token of one stream (n, w)."""
    n = len(stream)
    added = np.zeros((n, w_pv.shape[1]), complex)
    for t in range(1, n + 1):
        visible = {"causal": range(t), "all": range(n), "examples": range(n - 1)}[context]
        rho = RHO[normalizer](t if context == "causal" else n)
        for kq, pv in zip(w_kq, w_pv, strict=True):
            for i in visible if rho else ():
                added[t - 1] += pv @ stream[i] * (stream[i].conj() @ kq @ stream[t - 1]) / rho
    return added


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=RTOL, atol=RTOL * abs(np.asarray(expected)).max())


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("heads", "normalizer", "kind"),
    [(1, "t-1", "real"), (3, "t", "complex"), (2, slow_growth, "real"), (1, "1", "complex")],
)
def test_merged_layer_is_the_definition(context, heads, normalizer, kind):
    rng = np.random.default_rng(0)
    w_kq, w_pv, stream = draw(rng, (heads, 3, 3), kind), draw(rng, (heads, 2, 3)), draw(rng, (2, 5, 3), kind)
    layer = LinearSelfAttention(w_kq, w_pv, normalizer, context)
    assert (layer.width, layer.output_width, layer.causal) == (3, 2, context == "causal")
    assert_close(layer(stream), [definition(w_kq, w_pv, normalizer, context, z) for z in stream])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(("kind", "heads"), [("real", 1), ("complex", 2)])
def test_factored_layer_is_the_merged_one(context, kind, heads):
    rng = np.random.default_rng(1)
    w_k, w_q = draw(rng, (heads, 2, 3), kind), draw(rng, (heads, 2, 3), kind)
    w_p, w_v, stream = draw(rng, (heads, 4, 2), kind), draw(rng, (heads, 2, 3), kind), draw(rng, (6, 3), kind)
    layer = FactoredLinearSelfAttention(w_k=w_k, w_q=w_q, w_p=w_p, w_v=w_v, context=context)
    assert (layer.width, layer.output_width, layer.causal) == (3, 4, context == "causal")
    w_kq = np.swapaxes(w_k.conj(), 1, 2) @ w_q
    assert_close(layer(stream), definition(w_kq, w_p @ w_v, "t-1", context, stream))
    assert_close(layer(stream), LinearSelfAttention(w_kq, w_p @ w_v, "t-1", context)(stream))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(("kind", "heads"), [("real", 1), ("complex", 2)])
def test_low_rank_layer_is_the_merged_one(context, kind, heads):
    rng = np.random.default_rng(4)
    w_k, w_q, w_pv = draw(rng, (heads, 2, 3), kind), draw(rng, (heads, 2, 3), kind), draw(rng, (heads, 4, 3))
    stream = draw(rng, (6, 3), kind)
    layer = LowRankLinearSelfAttention(w_k=w_k, w_q=w_q, w_pv=w_pv, context=context)
    assert (layer.width, layer.output_width, layer.causal) == (3, 4, context == "causal")
    w_kq = np.swapaxes(w_k.conj(), 1, 2) @ w_q
    assert_close(layer(stream), definition(w_kq, w_pv, "t-1", context, stream))


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_single_token_without_predecessors_gives_zero(context):
    rng = np.random.default_rng(2)
    layer = LinearSelfAttention(draw(rng, (2, 3, 3)), draw(rng, (2, 3, 3)), "t-1", context)
    np.testing.assert_array_equal(layer(draw(rng, (4, 1, 3))), np.zeros((4, 1, 3)))
    other = LinearSelfAttention(layer.w_kq, layer.w_pv, "t", context)
    assert np.any(other(draw(rng, (4, 1, 3)))) == (context != "examples")


def test_leading_axes_are_optional_batch_axes():
    rng = np.random.default_rng(3)
    layer = LinearSelfAttention(draw(rng, (2, 3, 3)), draw(rng, (2, 3, 3)))
    streams = draw(rng, (2, 2, 5, 3))
    expected = [[definition(layer.w_kq, layer.w_pv, "t-1", "causal", z) for z in row] for row in streams]
    assert_close(layer(streams), expected)
    assert_close(layer(streams[0, 1]), expected[0][1])
    assert_close(layer(streams.tolist()), expected)


@pytest.mark.slow
def test_a_stack_adds_its_layers_one_by_one():
    rng = np.random.default_rng(4)
    layers = [
        LinearSelfAttention(draw(rng, (2, 3, 3)), draw(rng, (2, 3, 3)), context=context)
        for context in CONTEXTS
    ]
    stack, stream = LinearAttentionStack(layers), draw(rng, (2, 5, 3))
    assert (stack.width, stack.output_width, stack.causal) == (3, 3, False)
    assert LinearAttentionStack(layers[:1]).causal
    expected, outputs = stream.copy(), stack.outputs(stream)
    for layer, output in zip(layers, outputs, strict=True):
        added = [definition(layer.w_kq, layer.w_pv, "t-1", layer.context, z) for z in expected]
        expected = expected + np.array(added).real
        assert_close(output, expected)
    assert_close(stack(stream), expected)
    plain = Stack([Residual(layer) for layer in layers])
    assert (plain.width, plain.output_width, plain.causal) == (3, 3, False)
    assert_close(plain(stream), expected)
    for ours, theirs in zip(plain.outputs(stream), outputs, strict=True):
        assert_close(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_one_layer_on_paired_tokens_is_linear_attention(kind):
    rng = np.random.default_rng(5)
    reduced = MultiHeadLinearAttention(draw(rng, (2, 4, 4), kind), draw(rng, (2, 2, 4), kind), slow_growth)
    single = [LinearAttention(kq, pv) for kq, pv in zip(*reduced.heads(), strict=True)]
    full = [jnp.stack(weights) for weights in zip(*(head.to_full() for head in single), strict=True)]
    stack = LinearAttentionStack([LinearSelfAttention(*full, slow_growth)])
    model, tokens = SequenceModel(PairedTokens(2), stack, FirstBlock(2)), draw(rng, (3, 6, 2), kind)
    assert_close(model.predictions(tokens), reduced.predictions(tokens))
    assert_close(model(tokens), reduced(tokens))


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [LinearAttentionStack, lambda layers: Stack(map(Residual, layers))])
def test_a_looped_layer_is_a_stack_of_copies(wrap):
    rng = np.random.default_rng(6)
    layer = LinearSelfAttention(draw(rng, (1, 3, 3)) / 3, draw(rng, (1, 3, 3), "complex") / 3, context="all")
    looped, stream = Looped(wrap([layer]), 3), draw(rng, (2, 4, 3))
    assert (looped.width, looped.output_width, looped.causal) == (3, 3, False)
    copies = wrap([layer] * 5)
    # the stream is real and becomes complex in the first loop
    for after, expected in zip(looped.outputs(stream, loops=5), copies.outputs(stream), strict=True):
        assert_close(after, expected)
    assert_close(looped(stream, loops=5), copies(stream))
    assert_close(looped(stream), copies.outputs(stream)[2])
    slope, expected = (
        jax.grad(lambda z, f=f: jnp.abs(f(z)).sum())(stream) for f in (lambda z: looped(z, loops=5), copies)
    )
    assert_close(slope, expected)


@pytest.mark.slow
def test_gradients_equal_differences():
    rng = np.random.default_rng(7)
    layers = [
        LinearSelfAttention.gaussian(2, 2, 0.5, key=jax.random.key(0)),
        FactoredLinearSelfAttention.gaussian(2, 1, 0.5, key=jax.random.key(1), key_size=1),
    ]
    stack, stream, probe = LinearAttentionStack(layers), draw(rng, (3, 4, 2)), draw(rng, (3, 4, 2))
    value = jax.jit(lambda model: jnp.sum(probe * model(stream)))
    gradient = jax.jit(jax.grad(value))(stack)
    leaves, structure = jax.tree.flatten(stack)
    for k, slope in enumerate(jax.tree.leaves(gradient)):
        direction = draw(rng, slope.shape)
        step = 1e-5
        ends = [
            value(
                jax.tree.unflatten(
                    structure, [w + s * direction if i == k else w for i, w in enumerate(leaves)]
                )
            )
            for s in (step, -step)
        ]
        difference = float(ends[0] - ends[1]) / (2 * step)
        # central differences: error step² times a third derivative, and rounding over step, both below 1e-8
        assert float(jnp.sum(slope * direction)) == pytest.approx(difference, rel=1e-7, abs=1e-7)


@pytest.mark.slow
def test_jit_and_vmap_change_nothing(compilations):
    rng = np.random.default_rng(8)
    stack = LinearAttentionStack([LinearSelfAttention.gaussian(3, 2, 0.5, key=jax.random.key(2))] * 2)
    streams = draw(rng, (4, 5, 3))
    expected = stack(streams)
    assert_close(jax.jit(lambda model, z: model(z))(stack, streams), expected)
    assert_close(jax.vmap(stack)(streams), expected)
    models = jax.tree.map(lambda w: jnp.stack([w, 0 * w]), stack)
    both = jax.vmap(lambda model: model(streams))(models)
    assert_close(both[0], expected)
    np.testing.assert_array_equal(both[1], streams)
    with compilations() as made:
        jax.block_until_ready(stack(streams[::-1]))
    assert not made


def test_precision_is_that_of_weights_and_stream():
    rng = np.random.default_rng(9)
    layer = LinearSelfAttention(draw(rng, (2, 3, 3)), draw(rng, (2, 3, 3)))
    single, stream = jax.tree.map(lambda w: w.astype(np.float32), layer), draw(rng, (2, 5, 3))
    expected = layer(stream)
    coarse = single(stream.astype(np.float32))
    assert coarse.dtype == jnp.float32
    # unit roundoff 6e-8 in weights, stream and some twenty operations on each of them
    np.testing.assert_allclose(coarse, expected, atol=5e-6 * abs(expected).max())
    assert layer(stream.astype(np.float32)).dtype == single(stream).dtype == jnp.float64


@pytest.mark.slow
def test_gaussian_weights_have_their_scale():
    merged = LinearSelfAttention.gaussian(20, 3, 0.1, key=jax.random.key(3), output_width=10, context="all")
    assert (merged.w_kq.shape, merged.w_pv.shape, merged.context) == ((3, 20, 20), (3, 10, 20), "all")
    factored = FactoredLinearSelfAttention.gaussian(
        20, 3, 0.1, key=jax.random.key(4), key_size=15, value_size=12, output_width=10, normalizer="1"
    )
    shapes = [w.shape for w in (factored.w_k, factored.w_q, factored.w_p, factored.w_v)]
    assert shapes == [(3, 15, 20), (3, 15, 20), (3, 10, 12), (3, 12, 20)]
    low = LowRankLinearSelfAttention.gaussian(20, 3, 0.1, key=jax.random.key(5), rank=15, output_width=10)
    assert [w.shape for w in (low.w_k, low.w_q, low.w_pv)] == [(3, 15, 20), (3, 15, 20), (3, 10, 20)]
    for model in (merged, factored, low):
        for weights in jax.tree.leaves(model):
            # the sample variance of n normal entries has relative standard deviation √(2/n)
            assert abs(float(jnp.mean(weights**2)) / 0.01 - 1) < 5 * np.sqrt(2 / weights.size)
