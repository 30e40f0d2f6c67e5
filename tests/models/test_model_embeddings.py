"""Embeddings, positions and read-outs, entry by entry."""

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
    LayerNorm,
    LearnedPositions,
    NormedDense,
    OneHot,
    PairedTokens,
    Projected,
    RealForm,
    SinusoidalPositions,
    StackedPrompt,
    TokenTable,
    WithPositions,
)

RNG = np.random.default_rng(0)
TOKENS = RNG.normal(size=(2, 4, 3)) + 1j * RNG.normal(size=(2, 4, 3))
SYMBOLS = RNG.integers(0, 5, (2, 4))
X, Y = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 3))


@pytest.mark.parametrize("tokens", [TOKENS, TOKENS.real, TOKENS.real.astype(np.float32)])
def test_bare_and_paired_tokens(tokens):
    bare, paired = BareTokens(3), PairedTokens(3)
    assert (bare.width, bare.layout, paired.width, paired.layout) == (3, "tokens", 9, "tokens")
    np.testing.assert_array_equal(bare(tokens), tokens)
    stream = np.asarray(paired(tokens))
    assert stream.dtype == tokens.dtype
    assert stream.shape == (2, 4, 9)
    for t in range(4):
        before = tokens[:, t - 1] if t else np.zeros((2, 3))
        expected = np.concatenate([np.zeros((2, 3)), tokens[:, t], before], 1)
        np.testing.assert_array_equal(stream[:, t], expected)


def test_discrete_tokens():
    table = RNG.normal(size=(5, 3))
    one_hot, looked_up = OneHot(5), TokenTable(table)
    assert (one_hot.width, one_hot.layout, looked_up.width, looked_up.layout) == (5, "tokens", 3, "tokens")
    np.testing.assert_array_equal(one_hot(SYMBOLS), np.eye(5)[SYMBOLS])
    np.testing.assert_array_equal(looked_up(SYMBOLS), table[SYMBOLS])
    np.testing.assert_allclose(Projected(one_hot, table.T)(SYMBOLS), table[SYMBOLS], rtol=1e-15)
    np.testing.assert_array_equal(jax.jit(looked_up.__call__)(SYMBOLS), table[SYMBOLS])


def test_stacked_prompts():
    embedding = StackedPrompt(3)
    assert (embedding.width, embedding.layout) == (4, "stacked")
    stream = np.asarray(embedding(X, Y))
    assert stream.shape == (2, 4, 4)
    np.testing.assert_array_equal(stream[..., :3], X)
    np.testing.assert_array_equal(stream[:, :3, 3], Y)
    np.testing.assert_array_equal(stream[:, 3, 3], 0)
    np.testing.assert_array_equal(embedding(X[:, :1], Y[:, :0]), [[[*x, 0]] for x in X[:, 0]])


def test_interleaved_prompts():
    embedding = InterleavedPrompt(3)
    assert (embedding.width, embedding.layout) == (4, "interleaved")
    stream = np.asarray(embedding(X, Y))
    assert stream.shape == (2, 7, 4)
    for i in range(4):
        np.testing.assert_array_equal(stream[:, 2 * i], [[*x, 0] for x in X[:, i]])
    for i in range(3):
        np.testing.assert_array_equal(stream[:, 2 * i + 1], [[0, 0, 0, y] for y in Y[:, i]])
    np.testing.assert_array_equal(embedding(X[0, :1], Y[0, :0]), [[*X[0, 0], 0]])


@pytest.mark.parametrize(("embedding", "data"), [(BareTokens(3), (TOKENS,)), (StackedPrompt(3), (X, Y))])
def test_projections_and_positions_apply_to_any_embedding(embedding, data):
    weights, table = RNG.normal(size=(6, embedding.width)), RNG.normal(size=(5, 6))
    projected = Projected(embedding, weights)
    placed = WithPositions(projected, LearnedPositions(table))
    waves = WithPositions(projected, SinusoidalPositions(6))
    for each in (projected, placed, waves):
        assert (each.width, each.layout) == (6, embedding.layout)
    expected = np.asarray(embedding(*data)) @ weights.T
    np.testing.assert_allclose(projected(*data), expected, rtol=1e-13)
    np.testing.assert_allclose(placed(*data) - projected(*data), np.tile(table[:4], (2, 1, 1)), atol=1e-14)
    for t in range(4):
        angles = [t / 10000 ** (2 * j / 6) for j in range(3)]
        position = [f(angle) for angle in angles for f in (np.sin, np.cos)]
        np.testing.assert_allclose((waves(*data) - projected(*data))[0, t], position, atol=1e-14)


def test_positions_keep_the_precision_of_the_stream():
    stream = np.zeros((2, 4, 5), np.float32)
    assert SinusoidalPositions(5)(stream).dtype == jnp.float32
    np.testing.assert_array_equal(SinusoidalPositions(5)(stream)[0, 0], [0, 1, 0, 1, 0])


def test_real_form_of_complex_tokens():
    embedding = RealForm(PairedTokens(6))
    assert (embedding.width, embedding.layout) == (18, "tokens")
    expected = PairedTokens(6)(np.concatenate([TOKENS.real, TOKENS.imag], -1))
    assert embedding(TOKENS).dtype == float
    np.testing.assert_array_equal(embedding(TOKENS), expected)


def test_random_embeddings():
    table = TokenTable.gaussian(30, 20, 0.5, key=jax.random.key(0)).table
    weights = Projected.gaussian(BareTokens(30), 20, key=jax.random.key(1)).weights
    positions = LearnedPositions.gaussian(30, 20, 0.5, key=jax.random.key(2)).table
    assert (table.shape, weights.shape, positions.shape) == ((30, 20), (20, 30), (30, 20))
    for drawn, variance in ((table, 0.25), (weights, 1 / 30), (positions, 0.25)):
        # the sample variance of n normal entries has relative standard deviation √(2/n)
        assert abs(float(jnp.mean(drawn**2)) / variance - 1) < 5 * np.sqrt(2 / drawn.size)


@pytest.mark.slow
def test_readouts():
    stream, weights, bias = RNG.normal(size=(2, 4, 5)), RNG.normal(size=(6, 5)), RNG.normal(size=6)
    first, minus, plus = FirstBlock(2), LastEntry(), LastEntry(1)
    dense = Dense(weights, bias)
    norm = LayerNorm(RNG.normal(size=5), RNG.normal(size=5))
    normed, plain = NormedDense(dense, norm), NormedDense(dense)
    assert [r.output_width for r in (first, minus, dense, normed, ComplexPairs(dense))] == [2, 1, 6, 6, 3]
    np.testing.assert_array_equal(first(stream), stream[..., :2])
    np.testing.assert_array_equal(minus(stream), -stream[..., 4:])
    np.testing.assert_array_equal(plus(stream), stream[..., 4:])
    affine = stream @ weights.T + bias
    np.testing.assert_allclose(dense(stream), affine, rtol=1e-13)
    np.testing.assert_allclose(Dense(weights)(stream), affine - bias, atol=1e-13)
    np.testing.assert_allclose(normed(stream), np.asarray(norm(stream)) @ weights.T + bias, rtol=1e-12)
    np.testing.assert_allclose(plain(stream), dense(LayerNorm.unit(5)(stream)), rtol=1e-13)
    np.testing.assert_allclose(
        ComplexPairs(dense)(stream), affine[..., :3] + 1j * affine[..., 3:], rtol=1e-13
    )
    drawn = Dense.gaussian(40, 30, key=jax.random.key(3), output_gain=0.5)
    assert abs(float(jnp.mean(drawn.weights**2)) * 40 / 0.25 - 1) < 5 * np.sqrt(2 / 1200)
    np.testing.assert_array_equal(drawn.bias, np.zeros(30))
