"""Constructed copy heads, uniform attention, and explicit Jacobians."""

import jax.numpy as jnp
import numpy as np
import pytest

import mesascope as ms
from mesascope.models import LearnedPositions, SoftmaxSelfAttention
from mesascope.probes import Nothing, copy_attention, copy_sensitivity

_EMPTY = ms.LinearSelfAttention(*np.zeros((2, 1, 9, 9)))
_LINEAR = ms.SequenceModel(ms.PairedTokens(3), ms.LinearAttentionStack([_EMPTY]), ms.FirstBlock(3))


def _copying(tokens, entries, sharpness, *, heads=1, carry=1.0):
    """Attention to the previous token, on tokens of data and one-hot positions; other heads are uniform."""
    width = entries + tokens
    position = np.eye(tokens, width, entries)
    # key position i answers to query i + 1
    asked = np.sqrt(tokens) * sharpness * np.eye(tokens, k=1) @ position
    nobody = np.zeros_like(position)
    return SoftmaxSelfAttention(
        w_k=np.stack([position] * heads),
        w_q=np.stack([asked] + [nobody] * (heads - 1)),
        w_v=np.stack([carry * np.eye(entries, width)] * heads),
        w_p=np.stack([np.eye(width, entries)] * heads),
    )


def _positioned(embedding, tokens):
    """The data, then a one-hot position."""
    entries = embedding.width
    table = np.eye(tokens, entries + tokens, entries)
    return ms.WithPositions(
        ms.Projected(embedding, np.eye(entries + tokens, entries)), LearnedPositions(table)
    )


def _sequence_model(network):
    return ms.SequenceModel(_positioned(ms.BareTokens(3), 4), network, ms.FirstBlock(3))


def test_copying_heads_have_score_one(sequences):
    attention = _copying(4, 3, 30.0, heads=2)
    network = ms.Stack([ms.Residual(attention), ms.Residual(ms.MLP([np.eye(7)], [np.ones(7)]))])
    found = copy_attention(_sequence_model(network), sequences)
    # of 4 tokens the others weigh e^-30 each
    assert found.score.value == pytest.approx(1, abs=1e-12) and found.heads.value[0] == found.score.value
    np.testing.assert_allclose(found.heads.value[1], found.baseline, rtol=1e-12)
    np.testing.assert_array_equal(found.positions, (2, 3, 4))
    assert found.baseline == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert str(found).count("\n") == 2


def test_uniform_attention_has_score_one_over_t(sequences):
    attention = _copying(4, 3, 0.0)
    found = copy_attention(_sequence_model(attention), sequences)
    np.testing.assert_allclose(found.each.value[0], (1 / 2, 1 / 3, 1 / 4), rtol=1e-12)
    np.testing.assert_allclose(found.score, found.baseline, rtol=1e-12)


def _random(heads):
    """A pre-norm layer of random attention, keys and queries of two entries."""
    rng = np.random.default_rng(0)
    w_k, w_q = rng.normal(size=(2, heads, 2, 7)) / np.sqrt(7)
    values = np.stack([np.eye(7)] * heads)
    return ms.PreNorm(SoftmaxSelfAttention(w_k=w_k, w_q=w_q, w_p=values, w_v=values))


def test_random_attention_is_near_one_over_t(sequences):
    found = copy_attention(_sequence_model(ms.Residual(_random(8))), sequences)
    # Eight heads of random weights: scores vary by about 0.1 from head to head, and less from task to task.
    assert abs(found.heads.value.mean() - found.baseline) < 0.1
    assert (found.heads.low < found.heads.value).all() and (found.heads.value < found.heads.high).all()
    assert found.score.value == found.heads.value.max()


@pytest.mark.slow
def test_weights_equal_those_of_the_layer(sequences):
    """Tokens of 7 entries are linearly independent, so that the output of one head determines its attention."""
    layer = _random(1)
    model = _sequence_model(layer)
    tokens = np.asarray(layer.norm(model.embedding(sequences.sample)))
    attention = np.asarray(layer(model.embedding(sequences.sample))) @ np.linalg.pinv(tokens)
    wanted = np.diagonal(attention, -1, 1, 2).mean(0)
    np.testing.assert_allclose(copy_attention(model, sequences).each.value[0], wanted, rtol=1e-9)


@pytest.mark.slow
def test_labels_of_interleaved_prompts_copy_their_inputs(prompts):
    embedding = _positioned(ms.InterleavedPrompt(3), 9)
    model = ms.PromptModel(embedding, ms.Residual(_copying(9, 4, 30.0)), ms.LastEntry(1))
    found = copy_attention(model, prompts)
    np.testing.assert_array_equal(found.positions, (2, 4, 6, 8))
    assert found.score.value == pytest.approx(1, abs=1e-12)
    assert found.baseline == pytest.approx(np.mean([1 / 2, 1 / 4, 1 / 6, 1 / 8]))
    shares = copy_sensitivity(model, prompts, 3)
    # y_3 gets itself once by the residual connection, and the three entries of x_3 once by the head
    assert shares.before.value == pytest.approx(3 / 4, abs=1e-9)
    assert shares.own.value == pytest.approx(1 / 4, abs=1e-9) and shares.rest.value < 1e-9
    assert shares.baseline == 1 / 6


@pytest.mark.slow
def test_sensitivities_of_a_head_that_copies(sequences):
    alone = copy_sensitivity(_sequence_model(_copying(4, 3, 30.0)), sequences, 3)
    assert alone.before.value == pytest.approx(1, abs=1e-9) and alone.baseline == 1 / 4
    twice = _sequence_model(ms.Residual(_copying(4, 3, 30.0, carry=2.0)))
    found = copy_sensitivity(twice, sequences, 2)
    # the factors of own and previous entries are 1 and 2: squares 1 and 4
    assert found.before.value == pytest.approx(4 / 5, abs=1e-9)
    assert found.own.value == pytest.approx(1 / 5, abs=1e-9) and found.rest.value < 1e-9
    assert str(found).count("\n") == 3


def test_uniform_attention_has_equal_sensitivities(sequences):
    found = copy_sensitivity(_sequence_model(_copying(4, 3, 0.0)), sequences, 3)
    np.testing.assert_allclose([found.before.value, found.own.value], 1 / 4, rtol=1e-12)
    assert found.rest.value == pytest.approx(1 / 2)


@pytest.mark.slow
def test_linear_attention_and_mlps_have_sensitivities(sequences):
    """Without attention, paired tokens depend equally on both tokens, bare tokens only on themselves."""
    found = copy_sensitivity(_LINEAR, sequences, 3)
    np.testing.assert_allclose([found.before.value, found.own.value], 1 / 2, rtol=1e-12)
    bare = ms.SequenceModel(ms.BareTokens(3), ms.MLP([np.eye(3)] * 2, [np.ones(3)] * 2), ms.FirstBlock(3))
    assert copy_sensitivity(bare, sequences, 3).own.value == 1


def test_functions_of_streams_have_sensitivities(sequences):
    def streams(contexts):
        return [contexts[:, -1], contexts[:, -1] + 3 * contexts[:, -2] + contexts[:, 0]]

    found = copy_sensitivity(streams, sequences, 3)
    np.testing.assert_allclose(found.before.value, 9 / 11, rtol=1e-12)
    by_differences = copy_sensitivity(lambda c: streams(np.array(c)), sequences, 3)
    np.testing.assert_allclose(by_differences.before.value, 9 / 11, rtol=1e-7)


def test_intervals_show_that_tasks_differ(sequences):
    found = copy_sensitivity(lambda c: [c[:, -1], jnp.tanh(c[:, -1]) + c[:, -2]], sequences, 2)
    assert found.before.low < found.before.value < found.before.high
    assert found.before.value + found.own.value + found.rest.value == pytest.approx(1)


def test_models_without_attention_weights_are_refused(sequences, prompts):
    with pytest.raises(TypeError, match="begins with LinearAttentionStack, which has no attention weights"):
        copy_attention(_LINEAR, sequences)
    stacked = ms.PromptModel(ms.StackedPrompt(3), Nothing(4), ms.LastEntry(-1))
    for probe in (copy_attention, lambda m, p: copy_sensitivity(m, p, 2)):
        with pytest.raises(TypeError, match="nothing to copy"):
            probe(stacked, prompts)
    with pytest.raises(TypeError, match="must be a SequenceModel or a PromptModel, got function"):
        copy_attention(lambda c: c, sequences)
    with pytest.raises(TypeError, match="or for sequences a function"):
        copy_sensitivity(lambda x, y: x, prompts, 2)
    with pytest.raises(TypeError, match="a SequenceModel does not read prompts"):
        copy_sensitivity(_LINEAR, prompts, 2)


def test_the_number_of_examples_is_checked(sequences):
    for n in (0, 4):
        with pytest.raises(ValueError, match="n: must be in 1 … 3"):
            copy_sensitivity(_LINEAR, sequences, n)
    with pytest.raises(ValueError, match="at least 40 tasks"):
        copy_sensitivity(lambda c: [c[:, -1]] * 2, sequences.part(0, 30), 2)
