"""Streams after every layer and the logit lens, compared with the models and constructions of known steps."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mesascope as ms
from mesascope.models import Layer
from mesascope.probes import Problems, layer_streams, logit_lens


def _attention(width, heads=1, context="causal"):
    w_kq, w_pv = 0.3 * np.random.default_rng(0).normal(size=(2, heads, width, width))
    return ms.LinearSelfAttention(w_kq, w_pv, "t-1", context)


def _block(width):
    """Softmax attention and an MLP, with residual connections and normalization."""
    rng = np.random.default_rng(1)
    w_k, w_q, w_v = rng.normal(size=(3, 2, 2, width))
    attention = ms.SoftmaxSelfAttention(w_k=w_k, w_q=w_q, w_v=w_v, w_p=rng.normal(size=(2, width, 2)))
    mlp = ms.MLP(rng.normal(size=(2, width, width)), rng.normal(size=(2, width)))
    return ms.Stack([ms.Residual(ms.PreNorm(attention)), ms.Residual(mlp)])


def _models():
    pairs = ms.LinearAttentionStack([_attention(9, 2), _attention(9)])
    examples = ms.LinearAttentionStack([_attention(4, 1, "examples")] * 2)
    blocks, normed = ms.Stack([_block(3), _block(3)]), ms.NormedDense(ms.Dense(np.ones((3, 3))))
    label = ms.NormedDense(ms.Dense(np.ones((1, 4))))
    return {
        "linear": (ms.SequenceModel(ms.PairedTokens(3), pairs, ms.FirstBlock(3)), 2),
        "softmax": (ms.SequenceModel(ms.BareTokens(3), blocks, normed), 2),
        "single": (ms.SequenceModel(ms.PairedTokens(3), _attention(9), ms.FirstBlock(3)), 1),
        "prompts": (ms.PromptModel(ms.StackedPrompt(3), examples, ms.LastEntry(-1)), 2),
        "looped": (ms.PromptModel(ms.StackedPrompt(3), ms.Looped(examples, 2), ms.LastEntry(-1)), 2),
        "interleaved": (ms.PromptModel(ms.InterleavedPrompt(3), ms.Looped(_block(4), 3), label), 3),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "softmax", "single", "prompts", "looped", "interleaved"])
def test_the_read_out_of_the_last_layer_is_the_prediction(name, sequences, prompts):
    model, layers = _models()[name]
    problems = prompts if isinstance(model, ms.PromptModel) else sequences
    problems = replace(problems, weights=np.array([0, 0.5, 0, 0.5, 0])[: len(problems.weights)])
    found = layer_streams(model, problems)
    assert found.layers == layers
    read = found.read(layers)
    for n in (1, 3):
        np.testing.assert_allclose(read[:, n], _answer(model, problems, n), rtol=1e-11, atol=1e-12)
    assert not np.delete(read, (1, 3), 1).any()


def _answer(model, problems, n):
    if not problems.prompts:
        return eqx.filter_jit(model)(problems.sample[:, : n + 1])
    x, y = problems.sample
    return eqx.filter_jit(model)(x[:, : n + 1], y[:, :n])[:, None]


@pytest.mark.slow
def test_streams_are_those_of_the_embedding_and_of_the_network(sequences):
    model = _models()["linear"][0]
    embedded = model.embedding(sequences.sample)
    found = layer_streams(model, sequences).streams
    for stream, wanted in zip(found, (embedded, *model.network.outputs(embedded)), strict=True):
        np.testing.assert_allclose(stream[:, 1:], wanted[:, 1:], rtol=1e-12, atol=1e-13)
        assert not stream[:, 0].any()  # without an example nothing counts


@pytest.mark.slow
def test_functions_of_streams_are_accepted_as_models(sequences):
    model = _models()["linear"][0]

    def streams(contexts):
        stream = model.embedding(contexts)
        return [np.asarray(z[:, -1]) for z in (stream, *model.network.outputs(stream))]

    own = layer_streams(model, sequences)
    other = layer_streams(streams, sequences, readout=model.readout)
    for one, two in zip(own.streams, other.streams, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(own.read(1), other.read(1), rtol=1e-11, atol=1e-12)


def test_one_number_of_examples_is_enough(last_prompts):
    model = _models()["prompts"][0]
    found = layer_streams(model, last_prompts)
    x, y = last_prompts.sample
    np.testing.assert_allclose(found.read(2)[:, 4, 0], model(x, y[:, :-1]), rtol=1e-11)
    assert not found.read(2)[:, :4].any()


def test_the_lens_shows_a_step_of_gradient_descent_after_every_layer(prompts, steps_of_descent, descent):
    lens = logit_lens(layer_streams(steps_of_descent(3, 0.3), prompts), prompts)
    for steps in range(4):
        wanted = descent(prompts, 0.3, steps)
        np.testing.assert_allclose(lens.predictions[steps], wanted, rtol=1e-10, atol=1e-12)


def test_losses_and_distances_equal_their_definitions(last_prompts, steps_of_descent):
    lens = logit_lens(layer_streams(steps_of_descent(2, 0.3), last_prompts), last_prompts)
    f, y = lens.predictions[:, :, 4:], np.asarray(last_prompts.targets)[:, 4:]
    np.testing.assert_allclose(lens.loss.value, ((f - y) ** 2).mean((1, 2, 3)) / 2, rtol=1e-12)
    off = ((f - f[2]) ** 2).mean((1, 2, 3)) / (f[2] ** 2).mean()
    np.testing.assert_allclose(lens.distance.value, off, rtol=1e-12)
    assert lens.distance.value[0] == 1 and lens.distance.value[2] == 0
    assert (lens.loss.low < lens.loss.value).all() and (lens.loss.value < lens.loss.high).all()
    assert np.all(np.diff(lens.loss.value) < 0)
    assert str(lens).count("\n") == 3 and "layer 2" in str(lens)


@pytest.mark.slow
def test_symbols_are_read_as_probabilities():
    tokens = np.random.default_rng(0).integers(0, 3, size=(50, 5))
    vectors = np.eye(3)[tokens]
    data = tokens[:, :-1], vectors[:, :-2], vectors[:, 1:-1], vectors[:, :-1], vectors[:, 1:]
    problems = Problems(*data, np.array([0.0, 1, 1, 1]) / 3)
    embedding, logits = ms.TokenTable(np.eye(3, 4)), ms.Dense(np.ones((3, 4)) - np.eye(3, 4))
    model = ms.SequenceModel(embedding, _block(4), logits)
    wanted = jax.nn.softmax(model.predictions(tokens[:, :-1]))
    np.testing.assert_allclose(layer_streams(model, problems).read(2)[:, 1:], wanted, rtol=1e-11)


@pytest.mark.slow
def test_complex_streams_stay_complex(sequences):
    model = _models()["linear"][0]
    turned = replace(sequences, sample=sequences.sample * np.exp(1j))
    read = layer_streams(model, turned).read(2)
    assert np.iscomplexobj(read)
    np.testing.assert_allclose(read[:, 1:], model.predictions(turned.sample), rtol=1e-11, atol=1e-12)


class _Wide(Layer):
    """A layer with twice the input width as output width."""

    @property
    def width(self):
        return 9

    @property
    def output_width(self):
        return 18

    @property
    def causal(self):
        return True

    def __call__(self, stream):
        return jnp.concatenate([stream, stream], -1)


def test_a_readout_that_does_not_fit_a_layer_says_which(sequences):
    network, readout = ms.Stack([_Wide()]), ms.Dense(np.ones((3, 18)))
    found = layer_streams(ms.SequenceModel(ms.PairedTokens(3), network, readout), sequences)
    assert found.read(1).shape == (200, 4, 3)
    with pytest.raises(ValueError, match=r"cannot read the stream after layer 0, of shape \(200, 3, 9\)"):
        logit_lens(found, sequences)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ms.LinearAttention.diagonal(3, a=0.1, b=0.1), "LinearAttention has no layers"),
        (3, "int has no layers"),
        (lambda contexts: contexts, "must give a list of streams"),
        (_models()["prompts"][0], "does not read sequences"),
    ],
)
def test_models_without_layers_for_the_data_are_refused(model, said, sequences):
    with pytest.raises(TypeError, match=said):
        layer_streams(model, sequences)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda c: [c], r"the stream after layer 0 must have shape \(200, width\)"),
        (lambda c: [c[:, -1]] * c.shape[1], "gives 2 streams after some examples, 3 after 2"),
        (lambda c: [c[:, -1], c[:9, -1]], "the stream after layer 1 must"),
        (lambda c: [c[:, -1] / 0.0], "infinite or nan"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_invalid_streams_are_refused(function, said, sequences):
    with pytest.raises(ValueError, match=said):
        layer_streams(function, sequences)


def test_reading_needs_a_known_layer_and_a_readout(sequences, prompts):
    found = layer_streams(_models()["linear"][0], sequences)
    with pytest.raises(ValueError, match="layer: must be in 0 … 2, got 3"):
        found.read(3)
    with pytest.raises(TypeError, match="readout: these streams have none"):
        layer_streams(lambda c: [c[:, -1]], sequences).read(0)
    with pytest.raises(ValueError, match="readout: must map streams"):
        layer_streams(lambda c: [c[:, -1]], sequences, readout=lambda z: z[0]).read(0)
    with pytest.raises(ValueError, match="like the targets of the problems"):
        logit_lens(found, prompts)
    with pytest.raises(ValueError, match="at least 40 tasks"):
        logit_lens(layer_streams(_models()["linear"][0], sequences.part(0, 30)), sequences.part(0, 30))
