"""Hyperparameters are recovered from predictions, with and without noise, on one and on several sets of problems."""

import numpy as np
import pytest

from mesascope.learners import GradientDescent, Ridge, predictions
from mesascope.probes._evidence import Evidence
from mesascope.probes._fitters import fitters


def _evidence(learner, problems, noise):
    answers = np.asarray(predictions(learner, problems.x, problems.y, problems.queries))
    return Evidence(problems, answers + noise * np.std(answers) * np.cos(1e5 * np.abs(answers)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [GradientDescent(0.4), GradientDescent(0.2, 7), GradientDescent(4e5), GradientDescent(4e14), Ridge(0.7)],
)
@pytest.mark.parametrize("data", ["sequences", "complex_sequences", "prompts"])
def test_hyperparameters_are_recovered(learner, data, request):
    fitter, problems = fitters(None)[learner.name], request.getfixturevalue(data)
    clean, blurred = (_evidence(learner, problems, noise) for noise in (0.0, 1e-3))
    exact, noisy = fitter.fit([clean]), fitter.fit([blurred])
    for name, value in learner.hyperparameters.items():
        assert exact.learner.hyperparameters[name] == pytest.approx(float(value), rel=1e-6)
        # noise of 1e-3 in at least 800 numbers moves a scalar by about 1e-4; large answers weigh more than others
        assert noisy.learner.hyperparameters[name] == pytest.approx(float(value), rel=2e-3)
    assert exact.cost < 1e-12
    noise = np.sum(np.abs(blurred.answers - clean.answers) ** 2, -1)
    # the noise itself, but for what one scalar of at least 800 numbers takes from it
    assert noisy.cost == pytest.approx(np.sum(noise * blurred.weights) / blurred.size, rel=0.02)


@pytest.mark.slow
def test_the_cost_is_the_relative_distance(sequences):
    evidence = _evidence(GradientDescent(0.4), sequences, 0.0)
    fitted = fitters(None)["least-squares"].fit([evidence])
    other = np.asarray(predictions(fitted.learner, sequences.x, sequences.y, sequences.queries))
    off, size = (
        np.einsum("n,bnm->b", sequences.weights, a**2) for a in (other - evidence.answers, evidence.answers)
    )
    count = np.minimum(1, 10 * np.median(size) / size)  # no task counts more than ten median ones
    assert fitted.cost == pytest.approx(np.sum(count * off) / np.sum(count * size), rel=1e-10)


@pytest.mark.slow
def test_several_sets_of_problems_are_fitted_together(sequences, prompts):
    both = [_evidence(Ridge(0.7), problems, 0.0) for problems in (sequences, prompts)]
    fitted = fitters(None)["ridge"].fit(both)
    assert float(fitted.learner.penalty) == pytest.approx(0.7, rel=1e-6)
    torn = [_evidence(Ridge(0.1), sequences, 0.0), _evidence(Ridge(10.0), prompts, 0.0)]
    assert 0.1 < float(fitters(None)["ridge"].fit(torn).learner.penalty) < 10


@pytest.mark.slow
def test_a_model_that_predicts_zero_can_be_fitted(sequences):
    silent = Evidence(sequences, np.zeros(sequences.targets.shape))
    assert fitters(None)["gradient-descent"].fit([silent]).cost < 1


def test_no_task_counts_more_than_ten_medians(sequences):
    answers = _evidence(Ridge(1.0), sequences, 0.0).answers
    answers[3] *= 1e6
    weights = Evidence(sequences, answers).weights
    sizes = (np.abs(answers) ** 2).sum(-1) @ sequences.weights
    counted = (np.abs(answers) ** 2).sum(-1) * weights
    np.testing.assert_allclose(counted[3].sum(), 10 * np.median(sizes), rtol=1e-12)
    small = sizes <= 10 * np.median(sizes)
    assert 0.5 < small.mean() < 1
    np.testing.assert_array_equal(weights[small], np.broadcast_to(sequences.weights, weights[small].shape))
    silent = Evidence(sequences, np.zeros_like(answers))
    np.testing.assert_array_equal(silent.weights[0], sequences.weights)
    assert silent.size == 1
