"""The mesa layer, compared with ridge regression solved separately for every token."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import FactoredLinearSelfAttention, LinearAttentionStack, MesaLayer, mesa_transformer
from mesascope.processes import Gaussian, OrthogonalAR

NAMES = ("w_k", "w_q", "w_p", "w_v")


def draw(rng, shape, kind="real"):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if kind == "complex" else real


def weights(rng, kind="real", heads=2):
    shapes = ((heads, 2, 3), (heads, 2, 3), (heads, 3, 4), (heads, 4, 3))
    return {name: draw(rng, shape, kind) for name, shape in zip(NAMES, shapes, strict=True)}


def definition(w_k, w_q, w_p, w_v, regularization, stream):
    """Σ_h P_h V_t K_t* (K_t K_t* + I/λ)^{-1} q_t, by one linear solve for every token and head."""
    added = np.zeros((len(stream), w_p.shape[1]), complex)
    for t in range(len(stream)):
        for k, q, p, v in zip(w_k, w_q, w_p, w_v, strict=True):
            keys, values = k @ stream[: t + 1].T, v @ stream[: t + 1].T
            gram = keys @ keys.conj().T + np.eye(len(k)) / regularization
            added[t] += p @ values @ keys.conj().T @ np.linalg.solve(gram, q @ stream[t])
    return added


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("regularization", [0.1, 30.0])
def test_mesa_layer_is_ridge_regression_at_every_token(kind, regularization):
    rng = np.random.default_rng(0)
    factors, streams = weights(rng, kind), draw(rng, (2, 12, 3), kind)
    layer = MesaLayer(**factors, regularization=regularization)
    assert (layer.width, layer.output_width, layer.causal) == (3, 3, True)
    expected = np.array([definition(**factors, regularization=regularization, stream=z) for z in streams])
    # twelve rank-one steps on Gram matrices with condition numbers up to some thousand
    np.testing.assert_allclose(layer(streams), expected, rtol=1e-10, atol=1e-10 * abs(expected).max())
    np.testing.assert_allclose(layer(streams[1]), expected[1], rtol=1e-10, atol=1e-10 * abs(expected).max())


def test_the_limit_of_small_lambda_is_linear_attention():
    rng = np.random.default_rng(1)
    factors, stream = weights(rng), draw(rng, (6, 3))
    linear = FactoredLinearSelfAttention(**factors, normalizer="1")(stream)
    differences = [
        abs(MesaLayer(**factors, regularization=size)(stream) / size - linear).max() for size in (1e-4, 1e-5)
    ]
    # Φ_t = λ V K* (I + λ K K*)^{-1}: the difference is of first order in λ
    assert differences[0] / differences[1] == pytest.approx(10, rel=0.1)


def test_regularization_is_trained_through_its_logarithm():
    rng = np.random.default_rng(2)
    factors, stream, probe = weights(rng, heads=1), draw(rng, (4, 3)), draw(rng, (4, 3))
    layer = MesaLayer(**factors, regularization=0.7)
    assert float(layer.regularization) == pytest.approx(0.7, rel=1e-15)
    gradient = jax.jit(jax.grad(lambda model: jnp.sum(probe * model(stream))))(layer)
    step = 1e-5

    def moved(name, change):
        changed = {**factors, "regularization": 0.7 * np.exp(change if name == "log_regularization" else 0)}
        if name in factors:
            changed[name] = factors[name] + change
        return float(np.sum(probe * definition(**changed, stream=stream).real))

    for name in (*NAMES, "log_regularization"):
        difference = (moved(name, step) - moved(name, -step)) / (2 * step)
        # central differences: error step² times a third derivative, and rounding over step
        assert float(jnp.sum(getattr(gradient, name))) == pytest.approx(difference, rel=1e-6)


def test_stacks_and_random_layers():
    layer = MesaLayer.gaussian(3, 2, 0.5, key=jax.random.key(0), key_size=2, regularization=2.0)
    assert [getattr(layer, name).shape for name in NAMES] == [(2, 2, 3), (2, 2, 3), (2, 3, 3), (2, 3, 3)]
    stream = draw(np.random.default_rng(3), (5, 3))
    first = stream + definition(*(np.asarray(getattr(layer, n)) for n in NAMES), 2.0, stream).real
    second = first + definition(*(np.asarray(getattr(layer, n)) for n in NAMES), 2.0, first).real
    outputs = LinearAttentionStack([layer, layer]).outputs(stream)
    np.testing.assert_allclose(outputs[0], first, rtol=1e-10)
    np.testing.assert_allclose(outputs[1], second, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("regularization", [1.0, 100.0, 1e4])
def test_single_precision_gradients(regularization):
    """Keys of a noiseless process do not span the space: the hard case for the recursion."""
    process = OrthogonalAR(Gaussian(1.0), 3)
    tokens = process.sample(jax.random.key(1), 20, 8)
    model = mesa_transformer(3, 1, scale=0.5, key=jax.random.key(2), regularization=regularization)

    def gradient(dtype):
        def cast(tree):
            return jax.tree.map(lambda x: np.asarray(x, dtype) if eqx.is_inexact_array(x) else x, tree)

        with jax.enable_x64(dtype == "float64"):
            model_, tokens_ = jax.tree.map(jnp.asarray, (cast(model), cast(tokens)))
            loss = eqx.filter_grad(lambda m, x: jnp.mean((m.predictions(x[:, :-1]) - x[:, 2:]) ** 2))
            leaves = jax.tree.leaves(loss(model_, tokens_))
        assert all(leaf.dtype == dtype for leaf in leaves)
        return np.concatenate([np.ravel(leaf) for leaf in leaves]).astype(float)

    exact = gradient("float64")
    # tokens are rounded to 6e-8, and the ridge solution amplifies that by λ times the size of the Gram matrix
    assert np.linalg.norm(gradient("float32") - exact) < 5e-6 * regularization * np.linalg.norm(exact)


@pytest.mark.parametrize("batch", [63, 64, 65, 130])
def test_results_do_not_depend_on_blocks_of_the_batch(batch):
    rng = np.random.default_rng(4)
    layer, streams = MesaLayer(**weights(rng, heads=1)), draw(rng, (batch, 4, 3))
    alone = np.stack([layer(stream) for stream in streams])
    np.testing.assert_allclose(layer(streams), alone, rtol=1e-12, atol=1e-12 * abs(alone).max())


@pytest.mark.slow
@pytest.mark.parametrize("batch", [2, 70])  # small batches use another product
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_precision_of_the_tokens_is_kept_by_transformations(dtype, batch):
    with jax.enable_x64(False):
        layer = MesaLayer.gaussian(3, 1, 0.5, key=jax.random.key(0))
        layer = jax.tree.map(lambda x: x.astype(dtype), layer)
        streams = jax.random.normal(jax.random.key(1), (batch, 5, 3), dtype)
        whole = jax.jit(jax.vmap(layer))(streams)
        gradient = jax.vmap(jax.grad(lambda z: jnp.sum(layer(z).astype(jnp.float32))))(streams)
        assert whole.dtype == gradient.dtype == dtype
        # batches of one and of many round their products differently; the entries are of order one
        apart = np.abs(np.asarray(whole, float) - np.asarray(layer(streams), float))
        assert apart.max() < 10 * float(jnp.finfo(dtype).eps)
        assert bool(jnp.isfinite(gradient).all())
