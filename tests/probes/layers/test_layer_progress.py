"""Layers and numbers of steps: constructions whose layers are steps, explicit or hidden in the stream."""

from dataclasses import replace

import numpy as np
import pytest

import mesascope as ms
from mesascope.learners import GradientDescent, Newton
from mesascope.probes import (
    Measured,
    StepFamily,
    layer_progress,
    layer_streams,
    logit_lens,
    prediction_distance,
    probed_progress,
    step_family,
)
from mesascope.probes import error_similarity as similarity_of
from mesascope.probes._fitters import fitters, known_learners
from mesascope.probes._step_family import _with_steps, family_answers
from mesascope.theory import giannou2024, vonoswald2023


def _descent(step_size, steps):
    learners = tuple(GradientDescent(step_size, k) for k in steps)
    return StepFamily("gradient-descent", np.array(steps), learners)


@pytest.mark.slow
def test_each_layer_of_descent_is_one_step(prompts, steps_of_descent):
    lens = logit_lens(layer_streams(steps_of_descent(3, 0.3), prompts), prompts)
    family = step_family("gradient-descent", range(6), prompts, lens.predictions[-1], fitted_at=3)
    assert family.learners[2].step_size == pytest.approx(0.3, rel=1e-6)  # the fit stops at gains of 1e-13
    found = layer_progress(lens.predictions, family, prompts)
    for match in (found.nearest, found.most_similar):
        np.testing.assert_array_equal(match.steps.value, range(4))
        np.testing.assert_array_equal(match.steps.low, match.steps.high)
        assert match.slope == (1, 1, 1)
    np.testing.assert_allclose(np.diag(found.distance.value), 0, atol=1e-12)
    np.testing.assert_allclose(np.diag(found.similarity.value), 1, atol=1e-12)
    assert str(found).endswith("steps per layer: 1 [1, 1]") and str(found).count("\n") == 6


def test_distances_and_similarities_equal_the_metrics(prompts, descent):
    read = np.stack([descent(prompts, 0.2, steps) for steps in (1, 3, 2)])
    found = layer_progress(read, _descent(0.2, (1, 5)), prompts)
    other = descent(prompts, 0.2, 5)
    distance = prediction_distance(read[2], other, prompts).pooled
    np.testing.assert_allclose([end[2, 1] for end in found.distance], distance, rtol=1e-10)
    similarity = similarity_of(read[2], other, prompts).pooled
    np.testing.assert_allclose([end[2, 1] for end in found.similarity], similarity, rtol=1e-10)


def test_diverging_learners_have_large_finite_distances(prompts, descent):
    read = np.stack([descent(prompts, 0.2, steps) for steps in (1, 2, 3)])
    found = layer_progress(read, _descent(1e3, (1, 2, 200)), prompts)
    assert np.isfinite(found.distance.value).all()
    assert (found.distance.value[:, -1] > 1e50).all()
    assert "far: no learner of the family explains half of the predictions there" in str(found)


def test_layers_of_two_steps_advance_by_two(prompts, descent):
    lens = np.stack([descent(prompts, 0.2, steps) for steps in (1, 3, 5)])
    family = _descent(0.2, range(1, 6))
    assert layer_progress(lens, family, prompts).nearest.slope == (2, 2, 2)


def test_noise_widens_the_match(prompts, descent):
    """Layers between two steps are matched with either of them, depending on the resample."""
    one, two = (descent(prompts, 0.2, steps) for steps in (1, 2))
    family = _descent(0.2, (1, 2))
    noise = 0.3 * np.random.default_rng(0).normal(size=one.shape)
    found = layer_progress(np.stack([one, (one + two) / 2 + noise]), family, prompts)
    assert found.nearest.steps.low[1] == 1 and found.nearest.steps.high[1] == 2
    assert found.nearest.steps.low[0] == found.nearest.steps.high[0] == 1


@pytest.mark.slow
def test_each_layer_of_newtons_construction_is_one_step(few_prompts):
    """Tokens contain the moments; the layers of giannou2024 iterate for their inverse from the learner's initial matrix."""
    problems = few_prompts
    layer = ms.Residual(ms.LinearSelfAttention(*giannou2024.newton_step(3), "1", "all"))

    def streams(x, y):
        n = y.shape[1]
        gram = np.einsum("tni,tnj->tij", x[:, :n], x[:, :n])
        moment, largest = np.einsum("tni,tn->ti", x[:, :n], y), np.linalg.norm(gram, 2, (1, 2))
        start = gram / np.where(largest > 0, largest, 1)[:, None, None] ** 2
        tokens, read = giannou2024.newton_tokens(gram, start), []
        for _ in range(4):
            inverse = giannou2024.newton_inverse(tokens)
            read.append(np.einsum("ti,tij,tj->t", x[:, n], inverse, moment)[:, None])
            tokens = np.asarray(layer(tokens))
        return read

    lens = logit_lens(layer_streams(streams, problems, readout=lambda stream: stream), problems)
    family = step_family("newton", range(5), problems, lens.predictions[-1], fitted_at=3)
    assert isinstance(family.learners[0], Newton)
    found = layer_progress(lens.predictions, family, problems)
    assert found.nearest.slope == found.most_similar.slope == (1, 1, 1)
    np.testing.assert_array_equal(found.nearest.steps.value, range(4))


def test_conjugate_gradients_stop_at_the_solution(prompts):
    """Three dimensions need three steps: later steps are equal, and the smallest number is taken."""
    family = step_family("conjugate-gradients", (1, 2, 3, 5), prompts, prompts.targets, fitted_at=5)
    lens = family_answers(family, prompts)
    np.testing.assert_array_equal(layer_progress(lens, family, prompts).nearest.steps.value, (1, 2, 3, 3))


@pytest.mark.slow
def test_probes_find_steps_that_are_hidden_in_the_stream(many_prompts, descent):
    """Every layer has its step in a random direction of the stream, with the query and some noise."""
    rng = np.random.default_rng(0)
    streams = []
    for steps in (1, 2, 3, 4):
        entries = [descent(many_prompts, 0.2, steps), np.asarray(many_prompts.queries)]
        stream = np.concatenate(entries, -1) @ rng.normal(size=(4, 8))
        streams.append(stream + 0.01 * rng.normal(size=stream.shape))
    hidden = layer_streams(lambda x, y: [z[:, y.shape[1]] for z in streams], many_prompts)
    family = _descent(0.2, range(1, 6))
    found = probed_progress(hidden, family, many_prompts)
    np.testing.assert_array_equal(found.nearest.steps.value, (1, 2, 3, 4))
    assert found.nearest.slope == (1, 1, 1)
    assert np.diag(found.distance.value).max() < 1e-2 < found.distance.value[0, 3]


@pytest.mark.slow
def test_a_trained_layer_is_one_step(trained, trained_on):
    problems = trained_on[1]
    streams = layer_streams(trained, problems)
    family = _descent(float(vonoswald2023.best_step_size(3, 10)), range(1, 5))
    lens = layer_progress(logit_lens(streams, problems).predictions, family, problems)
    assert lens.nearest.steps.low[1] == lens.nearest.steps.high[1] == 1
    assert lens.most_similar.steps.high[1] == 1
    probed = probed_progress(streams, family, problems)
    assert probed.nearest.steps.value[1] == 1 and probed.distance.high[1, 0] < 0.02
    assert probed.distance.low[0].min() > 0.9  # the query alone says nothing about the answer


@pytest.mark.parametrize("name", [k.name for k in known_learners() if k.fitting.integer == "steps"])
def test_families_exist_for_every_learner_with_steps(name):
    fitter = fitters(None)[name]
    learner = fitter.build(np.full(len(fitter.fitting.scalars), -1.0), 3)
    more = _with_steps(learner, 5)
    assert type(more) is type(learner)
    kept = {**learner.hyperparameters, "steps": 5}
    assert {k: float(v) for k, v in more.hyperparameters.items()} == {k: float(v) for k, v in kept.items()}


def test_long_families_are_printed_in_part(prompts, descent):
    family = step_family("conjugate-gradients", (1, 2), prompts, prompts.targets, fitted_at=1)
    found = layer_progress(np.stack([descent(prompts, 0.2, k) for k in (1, 2)]), family, prompts)
    wide = replace(
        found,
        family=family._replace(steps=np.arange(1, 31)),
        distance=Measured(*(np.repeat(end, 15, 1) for end in found.distance)),
    )
    assert str(wide).splitlines()[1].split() == ["after", *map(str, range(1, 31, 3)), "nearest"]


@pytest.mark.parametrize(
    ("name", "steps", "fitted_at", "error", "said"),
    [
        (
            "ridge",
            range(3),
            1,
            ValueError,
            "'ridge' is not a learner with steps; use one of gradient-descent",
        ),
        ("descent", range(3), 1, ValueError, "is not a learner with steps"),
        ("newton", (), 1, ValueError, "steps: must be ascending"),
        ("newton", (2, 1), 1, ValueError, "steps: must be ascending"),
        ("newton", (1.5,), 1, TypeError, "steps must be an integer"),
        ("newton", (1,), 0, ValueError, "fitted_at must be at least 1"),
    ],
)
def test_bad_families_are_refused(name, steps, fitted_at, error, said, prompts):
    with pytest.raises(error, match=said):
        step_family(name, steps, prompts, prompts.targets, fitted_at=fitted_at)


def test_predictions_that_cannot_be_compared_are_refused(prompts):
    with pytest.raises(ValueError, match="answers: must have shape"):
        step_family("conjugate-gradients", (1,), prompts, prompts.targets[:, 1:], fitted_at=1)
    family = step_family("conjugate-gradients", range(2), prompts, prompts.targets, fitted_at=1)
    with pytest.raises(ValueError, match="with at least one layer, got"):
        layer_progress(prompts.targets[None], family, prompts)
    with pytest.raises(ValueError, match="predictions: must have shape"):
        layer_progress(np.zeros((3, 200, 5)), family, prompts)
    few = prompts.part(0, 30)
    with pytest.raises(ValueError, match="at least 40 tasks"):
        layer_progress(np.zeros((3, 30, 5, 1)), family, few)
    streams = layer_streams(lambda x, y: [x[:, -1], x[:, -1]], prompts)
    with pytest.raises(ValueError, match="after 0 steps conjugate-gradients predicts the same for all tasks"):
        probed_progress(streams, family, prompts)
    with pytest.raises(ValueError, match="have no layer"):
        probed_progress(layer_streams(lambda x, y: [x[:, -1]], prompts), family, prompts)
