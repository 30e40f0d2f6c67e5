"""Layers of softmax transformers, compared with their definitions token by token."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from mesascope.models import MLP, LayerNorm, Looped, PreNorm, Residual, SoftmaxSelfAttention, Stack

# Sums of some hundred products of numbers of order one.
RTOL = 1e-11
NAMES = ("w_k", "w_q", "w_p", "w_v")


@jax.jit
def apply(layer, stream):
    return layer(stream)


def attention(rng, heads=2, context="causal"):
    shapes = ((heads, 2, 3), (heads, 2, 3), (heads, 3, 4), (heads, 4, 3))
    factors = {name: rng.normal(size=shape) for name, shape in zip(NAMES, shapes, strict=True)}
    return SoftmaxSelfAttention(**factors, context=context)


def attention_definition(layer, stream):
    n, added = len(stream), np.zeros_like(stream)
    for t in range(n):
        visible = {"causal": t + 1, "all": n, "examples": n - 1}[layer.context]
        for k, q, p, v in zip(*(np.asarray(getattr(layer, name)) for name in NAMES), strict=True):
            weights = [np.exp((k @ stream[i]) @ (q @ stream[t]) / np.sqrt(len(k))) for i in range(visible)]
            for i in range(visible):
                added[t] += p @ v @ stream[i] * weights[i] / sum(weights)
    return added


def norm_definition(token, gain, bias):
    return gain * (token - token.mean()) / np.sqrt(token.var() + 1e-5) + bias


def mlp_definition(layer, token):
    for i, (weights, bias) in enumerate(zip(layer.weights, layer.biases, strict=True)):
        if i > 0:
            token = token * ndtr(token) if layer.activation == "gelu" else np.maximum(token, 0)
        token = np.asarray(weights) @ token + np.asarray(bias)
    return token


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=RTOL, atol=RTOL * abs(np.asarray(expected)).max())


@pytest.mark.parametrize("context", ["causal", "all", "examples"])
@pytest.mark.parametrize("heads", [1, 2])
def test_softmax_attention_is_the_definition(context, heads):
    rng = np.random.default_rng(0)
    layer, streams = attention(rng, heads, context), rng.normal(size=(2, 5, 3))
    assert (layer.width, layer.output_width, layer.causal) == (3, 3, context == "causal")
    expected = [attention_definition(layer, z) for z in streams]
    assert_close(apply(layer, streams), expected)
    assert_close(apply(layer, streams[1]), expected[1])
    single = apply(layer, streams[:, :1])
    assert np.any(single) == (context != "examples")


def test_softmax_attention_is_finite_for_large_scores():
    rng = np.random.default_rng(1)
    layer, stream = attention(rng, 1), 1e3 * rng.normal(size=(4, 3))
    outputs = apply(layer, stream)
    slopes = jax.jit(jax.grad(lambda model: jnp.sum(model(stream))))(layer)
    assert all(np.isfinite(x).all() for x in (outputs, *jax.tree.leaves(slopes)))
    # scores of order a million: every query sees its best key only
    scores = (stream @ np.asarray(layer.w_q[0]).T) @ (stream @ np.asarray(layer.w_k[0]).T).T
    scores[np.triu_indices(4, 1)] = -np.inf
    best = stream[np.argmax(scores, 1)] @ np.asarray(layer.w_p[0] @ layer.w_v[0]).T
    assert_close(outputs, best)


@pytest.mark.slow
def test_softmax_gradients_equal_differences():
    rng = np.random.default_rng(2)
    layer = Residual(PreNorm(attention(rng)))
    stream, probe = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    value = jax.jit(lambda model: jnp.sum(probe * model(stream)))
    leaves, structure = jax.tree.flatten(layer)
    for k, slope in enumerate(jax.tree.leaves(jax.jit(jax.grad(value))(layer))):
        direction, step = rng.normal(size=slope.shape), 1e-5
        ends = [
            value(
                jax.tree.unflatten(
                    structure, [w + s * direction if i == k else w for i, w in enumerate(leaves)]
                )
            )
            for s in (step, -step)
        ]
        difference = float(ends[0] - ends[1]) / (2 * step)
        # central differences: error step² times a third derivative, and rounding over step
        assert float(jnp.sum(slope * direction)) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_mlp_is_the_definition(activation):
    layer = MLP.gaussian((3, 4, 5, 2), key=jax.random.key(0), activation=activation)
    rng = np.random.default_rng(3)
    layer = MLP(layer.weights, [b + rng.normal(size=b.shape) for b in layer.biases], activation)
    assert (layer.width, layer.output_width, layer.causal) == (3, 2, True)
    streams = rng.normal(size=(2, 5, 3))
    assert_close(apply(layer, streams), [[mlp_definition(layer, token) for token in z] for z in streams])


@pytest.mark.slow
def test_layer_norm_is_the_definition():
    rng = np.random.default_rng(4)
    gain, bias, streams = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(2, 4, 3))
    layer = LayerNorm(gain, bias)
    assert (layer.width, layer.output_width, layer.causal) == (3, 3, True)
    assert_close(layer(streams), [[norm_definition(z, gain, bias) for z in row] for row in streams])
    assert_close(LayerNorm(gain)(streams), layer(streams) - bias)
    assert_close(LayerNorm.unit(3)(streams), LayerNorm(np.ones(3))(streams))
    np.testing.assert_array_equal(LayerNorm(gain, bias)(np.ones((1, 2, 3))), np.tile(bias, (1, 2, 1)))


@pytest.mark.slow
def test_residual_and_norm_around_a_layer():
    rng = np.random.default_rng(5)
    norm, inner, stream = LayerNorm(rng.normal(size=3)), attention(rng), rng.normal(size=(2, 5, 3))
    block = Residual(PreNorm(inner, norm))
    assert (block.width, block.output_width, block.causal) == (3, 3, True)
    assert not Residual(attention(rng, context="all")).causal
    assert PreNorm(MLP.gaussian((3, 2), key=jax.random.key(0))).output_width == 2
    normed = np.array([[norm_definition(z, norm.gain, 0) for z in row] for row in stream])
    assert_close(
        block(stream), [z + attention_definition(inner, u) for z, u in zip(stream, normed, strict=True)]
    )


@pytest.mark.slow
def test_a_stack_applies_its_layers_in_turn():
    rng = np.random.default_rng(6)
    layers = [Residual(attention(rng)), MLP.gaussian((3, 4, 2), key=jax.random.key(1)), LayerNorm.unit(2)]
    stack, stream = Stack(layers), rng.normal(size=(2, 5, 3))
    assert (stack.width, stack.output_width, stack.causal) == (3, 2, True)
    outputs = stack.outputs(stream)
    assert len(outputs) == 3
    before = stream
    for layer, output in zip(layers, outputs, strict=True):
        assert_close(output, layer(before))
        before = output
    assert_close(stack(stream), outputs[-1])
    assert_close(jax.jit(lambda z: stack(z))(stream), outputs[-1])
    assert_close(jax.vmap(stack)(stream), outputs[-1])


@pytest.mark.slow
def test_looped_softmax_is_a_stack_of_copies():
    rng = np.random.default_rng(7)
    block, stream = Residual(PreNorm(attention(rng))), rng.normal(size=(5, 3))
    outputs = Stack([block] * 3).outputs(stream)
    looped = Looped(block, 3)
    assert_close(looped(stream), outputs[-1])
    assert_close(looped(stream, loops=1), outputs[0])
    assert len(looped.outputs(stream, loops=2)) == 2
    single = looped(stream.astype(np.float32))
    assert single.dtype == jnp.float64  # that of the weights: a loop must not change the type of its stream
    # only the stream was rounded to single precision
    np.testing.assert_allclose(single, outputs[-1], atol=1e-5 * abs(outputs[-1]).max())


def test_many_loops_compile_like_few():
    looped = Looped(Residual(attention(np.random.default_rng(8))), 2)
    stream = jax.ShapeDtypeStruct((5, 3), float)
    sizes = [len(str(jax.make_jaxpr(lambda z, n=n: looped(z, loops=n))(stream))) for n in (10, 1000)]
    assert sizes[1] < sizes[0] + 20  # nothing but the count itself grows


@pytest.mark.slow
def test_random_weights_have_variance_one_over_fan_in():
    layer = SoftmaxSelfAttention.gaussian(24, 3, key=jax.random.key(2), output_gain=0.5)
    assert [getattr(layer, n).shape for n in NAMES] == [(3, 8, 24), (3, 8, 24), (3, 24, 8), (3, 8, 24)]
    mlp = MLP.gaussian((24, 30, 24), key=jax.random.key(3), output_gain=0.5)
    variances = [
        (layer.w_k, 1 / 24), (layer.w_q, 1 / 24), (layer.w_p, 0.25 / 24), (layer.w_v, 1 / 24),
        (mlp.weights[0], 1 / 24), (mlp.weights[1], 0.25 / 30),
    ]  # fmt: skip
    for weights, variance in variances:
        # the sample variance of n normal entries has relative standard deviation √(2/n)
        assert abs(float(jnp.mean(weights**2)) / variance - 1) < 5 * np.sqrt(2 / weights.size)
    sized = SoftmaxSelfAttention.gaussian(
        4, 3, key=jax.random.key(4), key_size=2, value_size=5, output_width=6, context="all"
    )
    assert (sized.w_k.shape, sized.w_p.shape, sized.context) == ((3, 2, 4), (3, 6, 5), "all")
