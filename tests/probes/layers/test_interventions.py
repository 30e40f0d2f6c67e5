"""Replaced layers: constructions with known layers, explicit references, and a trained layer."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.probes import (
    Affine,
    FromAnotherTask,
    Nothing,
    Problems,
    answers,
    closest_gradient_step,
    intervene,
    layer_streams,
    linear_surrogate,
    prediction_distance,
    replace_layer,
)
from mesascope.probes._stand_ins import gradient_step_layer
from mesascope.theory import vonoswald2023


def _read(model, problems):
    streams = layer_streams(model, problems)
    return streams.read(streams.layers)


def test_replacing_a_layer_by_itself_changes_nothing(last_prompts, steps_of_descent):
    model = steps_of_descent(3, 0.3)
    wanted = _read(model, last_prompts)
    own = ms.Residual(model.network.layers[1])
    replaced = replace_layer(model, 2, own)
    np.testing.assert_allclose(_read(replaced, last_prompts), wanted, rtol=1e-12)
    assert isinstance(model.network, ms.LinearAttentionStack)  # the model is left as it was
    looped = ms.PromptModel(model.embedding, ms.Looped(own, 3), model.readout)
    np.testing.assert_allclose(_read(replace_layer(looped, 3, own), last_prompts), wanted, rtol=1e-12)
    whole = replace_layer(model, (1, 3), ms.Looped(own, 3))
    assert len(whole.network.layers) == 1
    np.testing.assert_allclose(_read(whole, last_prompts), wanted, rtol=1e-12)


def test_removing_layers_removes_steps(last_prompts, steps_of_descent, descent):
    model = steps_of_descent(3, 0.3)
    found = intervene(model, 2, {}, last_prompts)
    assert found.names == ("untouched", "removed", "shuffled")
    three, two, y = (
        descent(last_prompts, 0.3, 3),
        descent(last_prompts, 0.3, 2),
        np.asarray(last_prompts.targets),
    )
    wanted = prediction_distance(three, two, last_prompts).pooled
    np.testing.assert_allclose([end[1] for end in found.distance], wanted, rtol=1e-9)
    np.testing.assert_allclose(found.loss.value[:2], [((f - y)[:, 4] ** 2).mean() / 2 for f in (three, two)])
    assert found.distance.value[0] == 0
    assert np.all(found.loss.low < found.loss.value) and np.all(found.loss.value < found.loss.high)
    assert str(found).count("\n") == 3


def test_a_shuffled_layer_predicts_for_another_task(last_prompts, steps_of_descent, descent):
    """The single layer writes the whole prediction: shuffled, it is that of the previous task."""
    found = intervene(steps_of_descent(1, 0.3), 1, {}, last_prompts)
    one = descent(last_prompts, 0.3, 1)
    wanted = prediction_distance(one, np.roll(one, 1, 0), last_prompts).pooled.value
    np.testing.assert_allclose(found.distance.value[2], wanted, rtol=1e-9)
    assert found.distance.value[1] == 1  # removed, it answers 0


def test_the_closest_step_of_a_layer_replaces_it(last_prompts, steps_of_descent):
    model = steps_of_descent(3, 0.3)
    for layer in (1, 2, 3):
        step = closest_gradient_step(model, layer, last_prompts)
        assert step.step_size == pytest.approx(0.3, rel=1e-12)
        assert step.explained == pytest.approx(1, abs=1e-12)
    found = intervene(model, 3, {"one step": step.layer}, last_prompts)
    assert found.names[1] == "one step" and found.distance.value[1] < 1e-24


def test_a_step_has_the_normalizer_of_the_layer(last_prompts):
    """For two layers with a sum over the examples, one step for both is smaller than their sum, and not exact."""
    attention = ms.LinearSelfAttention(*vonoswald2023.gradient_descent_step(3, 0.05), "1", "examples")
    loops = ms.Looped(ms.LinearAttentionStack([attention]), 2)
    model = ms.PromptModel(ms.StackedPrompt(3), loops, ms.LastEntry(-1))
    step = closest_gradient_step(model, 2, last_prompts)
    assert step.step_size == pytest.approx(0.05, rel=1e-12) and step.layer.layer.normalizer == "1"
    both = closest_gradient_step(model, (1, 2), last_prompts)
    assert 0.05 < both.step_size < 0.1 and 0.5 < both.explained < 1


def test_the_closest_step_is_the_closest(last_prompts, random_attention):
    """No other step size explains more of the change of the read-out by a random layer."""
    stack = ms.LinearAttentionStack([random_attention(4, 1, "examples")] * 2)
    model = ms.PromptModel(ms.StackedPrompt(3), stack, ms.LastEntry(-1))
    best = closest_gradient_step(model, 1, last_prompts)
    streams = layer_streams(model, last_prompts)

    def left(step_size):
        layer = gradient_step_layer(model.embedding, model.network.layers[0], step_size)
        return (
            (streams.read(1) - layer_streams(replace_layer(model, 1, layer), last_prompts).read(1)) ** 2
        ).sum()

    least = left(best.step_size)
    assert least < left(best.step_size * 1.01) and least < left(best.step_size * 0.99)
    changed = ((streams.read(1) - streams.read(0)) ** 2).sum()
    assert best.explained == pytest.approx(1 - least / changed, rel=1e-9)


@pytest.mark.slow
def test_the_step_of_sequences_is_that_of_linear_attention(sequences):
    a, b = 0.4, 0.5
    diagonal = ms.LinearAttention.diagonal(3, a=a, b=b)
    network = ms.LinearAttentionStack([ms.LinearSelfAttention(*(w[None] for w in diagonal.to_full()))])
    model = ms.SequenceModel(ms.PairedTokens(3), network, ms.FirstBlock(3))
    np.testing.assert_allclose(_read(model, sequences), answers(diagonal, sequences), rtol=1e-10)
    step = closest_gradient_step(model, 1, sequences)
    assert step.step_size == pytest.approx(a * b, rel=1e-12)
    assert step.explained == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
def test_an_affine_layer_has_an_exact_surrogate(sequences, random_attention):
    rng = np.random.default_rng(0)
    layer = ms.MLP([rng.normal(size=(9, 9))], [rng.normal(size=9)])
    attention = ms.Residual(random_attention(9))
    model = ms.SequenceModel(ms.PairedTokens(3), ms.Stack([attention, layer]), ms.FirstBlock(3))
    found = intervene(model, 2, {"linear": linear_surrogate(model, 2, sequences)}, sequences)
    assert found.distance.value[1] < 1e-14  # the least penalty leaves 1e-20 of what is well determined
    through = replace_layer(model, (1, 2), linear_surrogate(model, (1, 2), sequences))
    assert len(through.network.layers) == 1
    read, wanted = _read(through, sequences), _read(model, sequences)
    # attention is not linear in its token
    assert 1e-3 < prediction_distance(wanted, read, sequences).pooled.value < 1


@pytest.mark.slow
def test_complex_layers_have_surrogates_and_steps(random_attention):
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(100, 5, 3)) + 1j * rng.normal(size=(100, 5, 3))
    contexts, weights = tokens[:, :-1], np.array([0.0, 0, 0, 1])
    problems = Problems(contexts, contexts[:, :-1], contexts[:, 1:], contexts, tokens[:, 1:], weights)
    network = ms.LinearAttentionStack([random_attention(9)])
    model = ms.SequenceModel(ms.PairedTokens(3), network, ms.FirstBlock(3))
    surrogate = linear_surrogate(model, 1, problems)
    found = intervene(model, 1, {"linear": surrogate}, problems)
    assert np.iscomplexobj(surrogate.weights)
    # nearer than nothing, which is nearer than another task
    assert found.distance.value[1] < 1 < found.distance.value[3]
    assert closest_gradient_step(model, 1, problems).explained > 0


@pytest.mark.slow
def test_a_trained_layer_is_a_step_of_gradient_descent(trained, trained_on):
    """The step does not change the loss, removing the layer loses everything learned."""
    fitted_to, judged_by = trained_on
    step = closest_gradient_step(trained, 1, fitted_to)
    linear = linear_surrogate(trained, 1, fitted_to)
    found = intervene(trained, 1, {"one step": step.layer, "linear": linear}, judged_by)
    untouched, replaced, surrogate, removed, shuffled = found.loss.value
    # Training ends near the best step, not at it; the loss is flat there.
    assert step.step_size == pytest.approx(float(vonoswald2023.best_step_size(3, 10)), rel=0.05)
    assert step.explained > 0.98 and found.distance.high[1] < 0.02
    assert replaced < 1.05 * untouched
    assert found.loss.low[2] > found.loss.high[1] and found.loss.low[3] > found.loss.high[1]
    assert shuffled > removed > 2 * untouched and surrogate > 2 * untouched


def test_replacements_are_layers(last_prompts, steps_of_descent):
    stream = np.random.default_rng(0).normal(size=(3, 2, 4))
    np.testing.assert_array_equal(Nothing(4)(stream), stream)
    np.testing.assert_allclose(Affine(2 * np.eye(4), np.ones(4))(stream), 2 * stream + 1)
    shuffled = FromAnotherTask(Affine(2 * np.eye(4), np.ones(4)))(stream)
    np.testing.assert_allclose(shuffled, stream + np.roll(stream + 1, 1, 0))
    with pytest.raises(ValueError, match="Affine: expected weights"):
        Affine(np.eye(4), np.ones(3))
    with pytest.raises(ValueError, match="entries must be at least 1"):
        Nothing(0)


@pytest.mark.parametrize("which", [0, 4, -1, (2, 1), (0, 2), (3, 4)])
def test_unknown_layers_are_refused(which, last_prompts, steps_of_descent):
    with pytest.raises(ValueError, match="which: must be a layer in 1 … 3"):
        replace_layer(steps_of_descent(3, 0.3), which, Nothing(4))


def test_invalid_replacements_are_refused(last_prompts, sequences, steps_of_descent, random_attention):
    model = steps_of_descent(2, 0.3)
    for which in ("1", 1.0, (1, 2, 2)):
        with pytest.raises(TypeError, match="which: must be the number of a layer, or a pair"):
            replace_layer(model, which, Nothing(4))
    with pytest.raises(TypeError, match="is not a layer"):
        replace_layer(model, 1, lambda z: z)
    with pytest.raises(ValueError, match="layer 0 gives width 5, layer 1 takes 4"):
        replace_layer(model, 1, Affine(np.ones((4, 5)), np.ones(5)))
    with pytest.raises(TypeError, match="function has no layers to replace"):
        replace_layer(lambda contexts: contexts, 1, Nothing(6))
    with pytest.raises(ValueError, match="removed is the name of a reference"):
        intervene(model, 1, {"removed": Nothing(4)}, last_prompts)
    with pytest.raises(ValueError, match="at least 40 tasks"):
        intervene(model, 1, {}, last_prompts.part(0, 30))
    bare = ms.SequenceModel(ms.BareTokens(3), Nothing(3), ms.FirstBlock(3))
    with pytest.raises(ValueError, match="sees the tokens to predict"):
        replace_layer(bare, 1, random_attention(3, 1, "all"))
    with pytest.raises(TypeError, match="no step of gradient descent is known on the tokens of BareTokens"):
        closest_gradient_step(bare, 1, sequences)
    narrow = ms.Stack([Affine(np.ones((9, 5)), np.ones(5))])
    with pytest.raises(ValueError, match="cannot be removed"):
        intervene(ms.SequenceModel(ms.PairedTokens(3), narrow, ms.FirstBlock(3)), 1, {}, sequences)
