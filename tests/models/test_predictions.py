"""Predictions, compared with the definition in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesascope.core import embed_full, reduced_from_full
from mesascope.models import FactoredLinearAttention, LinearAttention, MultiHeadLinearAttention

# Sums of at most a thousand products of numbers of order one: rounding stays a hundred times below this.
RTOL = 1e-12


def slow_growth(t):
    return 1 + np.sqrt(t) / 3


NORMALIZERS = {"t-1": lambda t: t - 1, "t": lambda t: t, "1": lambda t: 1, slow_growth: slow_growth}
FORMS = ["merged", "heads", "factored"]
SHAPES = [(), (3,), (2, 3)]


def draw(rng, shape, kind):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if kind == "complex" else real


def definition(w_kq, w_pv, rho, tokens):
    """ŷ_2 … ŷ_T of one sequence (T, d): W^PV (Σ_{i≤t} e_i e_i*) W^KQ e_t/ρ_t, summed over heads."""
    horizon, dim = tokens.shape
    e = np.zeros((horizon, 2 * dim), complex)
    for i in range(horizon):
        e[i, :dim] = tokens[i]
        if i > 0:
            e[i, dim:] = tokens[i - 1]
    predictions = np.zeros((horizon - 1, dim), complex)
    for t in range(2, horizon + 1):
        for kq, pv in zip(w_kq, w_pv, strict=True):
            for i in range(t):
                predictions[t - 2] += pv @ e[i] * (e[i].conj() @ (kq @ e[t - 1])) / rho(t)
    return predictions


def paper_definition(w_kq, w_pv, rho, tokens):
    """The same in the paper's form: f(E_t) = E_t + W^PV E_t (E_t* W^KQ E_t)/ρ_t, read in its last column."""
    horizon, dim = tokens.shape
    predictions = []
    for t in range(2, horizon + 1):
        full = np.asarray(embed_full(tokens[:t])).T  # columns (0; x_i; x_{i−1}), shape (3d, t)
        output = full + w_pv @ full @ (full.conj().T @ w_kq @ full) / rho(t)
        predictions.append(output[:dim, -1])
    return np.array(predictions)


def over_batch(function, tokens):
    flat = tokens.reshape(-1, *tokens.shape[-2:])
    values = np.stack([function(sequence) for sequence in flat])
    return values.reshape(*tokens.shape[:-2], *values.shape[1:])


def model_and_heads(form, dim, normalizer, kind, rng):
    """A model with random weights, and its merged weights of every head as numpy arrays."""
    if form == "merged":
        w_kq, w_pv = draw(rng, (2 * dim, 2 * dim), kind), draw(rng, (dim, 2 * dim), kind)
        return LinearAttention(w_kq, w_pv, normalizer), (w_kq[None], w_pv[None])
    if form == "heads":
        w_kq, w_pv = draw(rng, (3, 2 * dim, 2 * dim), kind), draw(rng, (3, dim, 2 * dim), kind)
        return MultiHeadLinearAttention(w_kq, w_pv, normalizer), (w_kq, w_pv)
    heads, key_size, value_size = 2, 3, 1 + dim
    w_k, w_q = (draw(rng, (heads, key_size, 2 * dim), kind) for _ in range(2))
    w_p, w_v = draw(rng, (heads, dim, value_size), kind), draw(rng, (heads, value_size, 2 * dim), kind)
    merged = np.stack([k.conj().T @ q for k, q in zip(w_k, w_q, strict=True)])
    values = np.stack([p @ v for p, v in zip(w_p, w_v, strict=True)])
    return FactoredLinearAttention(w_k, w_q, w_p, w_v, normalizer), (merged, values)


@pytest.mark.parametrize("tokens_kind", ["real", "complex"])
@pytest.mark.parametrize("weights_kind", ["real", "complex"])
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=["t-1", "t", "1", "function"])
@pytest.mark.parametrize("form", FORMS)
def test_predictions_equal_the_definition(form, normalizer, weights_kind, tokens_kind):
    rng = np.random.default_rng([ord(form[0]), len(weights_kind), len(tokens_kind)])
    dim, horizon = 2, 6
    # every form meets every batch shape
    shape = SHAPES[(2 * (weights_kind == "complex") + (tokens_kind == "complex") + FORMS.index(form)) % 3]
    model, (w_kq, w_pv) = model_and_heads(form, dim, normalizer, weights_kind, rng)
    tokens = draw(rng, (*shape, horizon, dim), tokens_kind)
    expected = over_batch(lambda x: definition(w_kq, w_pv, NORMALIZERS[normalizer], x), tokens)
    predictions = model.predictions(tokens)
    assert predictions.shape == (*shape, horizon - 1, dim)
    assert jnp.iscomplexobj(predictions) == ("complex" in (weights_kind, tokens_kind))
    np.testing.assert_allclose(predictions, expected, rtol=RTOL, atol=RTOL * abs(expected).max())
    # the call sees contexts of any length and answers with the last prediction
    for t in (2, 3, horizon):
        answer = model(tokens[..., :t, :])
        assert answer.dtype == predictions.dtype
        np.testing.assert_allclose(
            answer, expected[..., t - 2, :], rtol=RTOL, atol=RTOL * abs(expected).max()
        )


@pytest.mark.slow
@given(st.integers(1, 4), st.integers(2, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=12)  # every shape compiles anew
def test_predictions_equal_the_definition_for_any_shape(dim, horizon, seed):
    rng = np.random.default_rng(seed)
    model, (w_kq, w_pv) = model_and_heads("heads", dim, "t-1", "complex", rng)
    tokens = draw(rng, (horizon, dim), "complex")
    expected = definition(w_kq, w_pv, NORMALIZERS["t-1"], tokens)
    tolerance = RTOL * abs(expected).max()
    np.testing.assert_allclose(model.predictions(tokens), expected, rtol=RTOL, atol=tolerance)
    np.testing.assert_allclose(model(tokens), expected[-1], rtol=RTOL, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("dim", [1, 3])
def test_reduced_weights_and_the_paper_form_give_the_same_predictions(dim, kind):
    rng = np.random.default_rng(dim)
    # all 3d × 3d entries are random, including those that do not affect the prediction
    w_kq, w_pv = (draw(rng, (3 * dim, 3 * dim), kind) for _ in range(2))
    tokens = draw(rng, (5, dim), "complex")
    model = LinearAttention.from_full(w_kq, w_pv, "t")
    expected = paper_definition(w_kq, w_pv, lambda t: t, tokens)
    np.testing.assert_allclose(
        model.predictions(tokens), expected, rtol=RTOL, atol=RTOL * abs(expected).max()
    )
    assert model.normalizer == "t"

    full_kq, full_pv = model.to_full()
    assert full_kq.shape == full_pv.shape == (3 * dim, 3 * dim)
    again = LinearAttention.from_full(full_kq, full_pv, "t")
    np.testing.assert_array_equal(again.w_kq, model.w_kq)
    np.testing.assert_array_equal(again.w_pv, model.w_pv)
    np.testing.assert_array_equal(full_kq[dim:, dim:], w_kq[dim:, dim:])
    np.testing.assert_array_equal(full_pv[:dim, dim:], w_pv[:dim, dim:])
    # zero wherever nothing reaches the prediction
    assert jnp.count_nonzero(full_kq) == (2 * dim) ** 2
    assert jnp.count_nonzero(full_pv) == 2 * dim**2
    np.testing.assert_allclose(
        paper_definition(np.asarray(full_kq), np.asarray(full_pv), lambda t: t, tokens), expected, rtol=1e-11
    )
    np.testing.assert_array_equal(
        reduced_from_full(embed_full(tokens))[:, :dim], tokens
    )  # the blocks of both embeddings stand in one order


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_future_tokens_do_not_change_predictions(form):
    rng = np.random.default_rng(1)
    model, _ = model_and_heads(form, 2, "t-1", "complex", rng)
    tokens = draw(rng, (2, 7, 2), "complex")
    predictions = np.asarray(model.predictions(tokens))
    for t in range(2, 7):
        other = tokens.copy()
        other[:, t:] = 1e3 * draw(rng, (2, 7 - t, 2), "complex")
        seen = np.asarray(model.predictions(other))
        np.testing.assert_array_equal(
            seen[:, : t - 1], predictions[:, : t - 1]
        )  # not even a rounding differs
        assert (seen[:, t - 1 :] != predictions[:, t - 1 :]).all()
        changed = tokens.copy()
        changed[:, t - 1] += 1
        assert (np.asarray(model.predictions(changed))[:, t - 2] != predictions[:, t - 2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("a, b", [(0.1, 0.3), (-2.0, 1.5)])
def test_diagonal_weights_are_one_gradient_step(a, b):
    rng = np.random.default_rng(0)
    dim, horizon = 3, 6
    tokens = draw(rng, (horizon, dim), "complex")
    model = LinearAttention.diagonal(dim, a, b)
    predictions = model.predictions(tokens)
    for t in range(2, horizon + 1):

        def least_squares(w, t=t):
            errors = tokens[1:t] - tokens[: t - 1] @ w.T  # x_{i+1} − W x_i, i < t
            return 0.5 * jnp.sum(jnp.abs(errors) ** 2)

        # jax.grad of a real function of a complex matrix is the conjugate of the direction of ascent
        descent = -jax.grad(least_squares)(jnp.zeros((dim, dim), complex)).conj()
        step = a * b / (t - 1) * descent
        np.testing.assert_allclose(predictions[t - 2], step @ tokens[t - 1], rtol=RTOL)
    np.testing.assert_allclose(model.products(), a * b, rtol=1e-15)


def test_products_read_the_diagonals_that_the_gradient_step_uses():
    d = 3
    w_kq, w_pv = np.arange(36.0).reshape(6, 6), np.arange(18.0).reshape(3, 6)
    expected = [w_kq[d + j, j] * w_pv[j, j] for j in range(d)]
    np.testing.assert_array_equal(LinearAttention(w_kq, w_pv).products(), expected)


@pytest.mark.slow
def test_gaussian_weights_have_the_given_scale():
    models = [
        LinearAttention.gaussian(20, 0.3, key=jax.random.key(0)),
        MultiHeadLinearAttention.gaussian(20, 2, 0.3, key=jax.random.key(1), normalizer="t"),
        FactoredLinearAttention.gaussian(20, 2, 0.3, key=jax.random.key(2), key_size=7, value_size=7),
    ]
    assert [m.normalizer for m in models] == ["t-1", "t", "t-1"]
    assert [m.dim for m in models] == [20, 20, 20]
    assert models[1].w_kq.shape == (2, 40, 40)
    assert models[2].w_k.shape == models[2].w_q.shape == (2, 7, 40)
    assert (models[2].w_p.shape, models[2].w_v.shape) == ((2, 20, 7), (2, 7, 40))
    for model in models:
        for leaf in jax.tree.leaves(model):
            # the standard deviation of n normal numbers is off by 1/√(2n) relative: five of these
            assert np.std(leaf) == pytest.approx(0.3, rel=5 / np.sqrt(2 * leaf.size))
    kept = jax.eval_shape(lambda key: FactoredLinearAttention.gaussian(2, 1, 0.3, key=key), jax.random.key(2))
    assert (kept.w_k.shape, kept.w_v.shape) == ((1, 4, 4), (1, 2, 4))  # sizes at which no rank is lost


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_single_precision_is_preserved_and_accurate(kind):
    rng = np.random.default_rng(2)
    model, (w_kq, w_pv) = model_and_heads("merged", 2, slow_growth, kind, rng)
    single = jax.tree.map(lambda w: w.astype(np.complex64 if kind == "complex" else np.float32), model)
    tokens = draw(rng, (6, 2), kind)
    coarse = tokens.astype(np.complex64 if kind == "complex" else np.float32)
    expected = definition(w_kq, w_pv, slow_growth, tokens)
    for predictions, truth in ((single.predictions(coarse), expected), (single(coarse), expected[-1])):
        assert jnp.finfo(predictions.dtype).bits == 32
        # unit roundoff 6e-8 in weights, tokens and some twenty operations on each of them
        np.testing.assert_allclose(predictions, truth, atol=5e-6 * abs(expected).max())


def test_the_normalizer_has_the_precision_of_the_prediction():
    rng = np.random.default_rng(3)
    model, (w_kq, w_pv) = model_and_heads("merged", 2, slow_growth, "real", rng)
    tokens = rng.integers(-4, 5, (6, 2)).astype(np.float32)  # exact in single precision
    expected = definition(w_kq, w_pv, slow_growth, tokens)
    assert model.predictions(tokens).dtype == model(tokens).dtype == jnp.float64
    np.testing.assert_allclose(model.predictions(tokens), expected.real, rtol=RTOL)
    np.testing.assert_allclose(model(tokens), expected[-1].real, rtol=RTOL)


def test_integers_and_lists_are_accepted():
    model = LinearAttention([[0, 0], [2, 0]], [[3, 0]])
    assert model.w_kq.dtype == jnp.float64
    tokens = [[1], [2], [3]]
    # one gradient step: 6/(t−1) Σ_{i<t} x_{i+1} x_i x_t = 6·2·2 and 3·(2 + 6)·3
    np.testing.assert_allclose(model.predictions(tokens), [[24.0], [72.0]], rtol=1e-15)
