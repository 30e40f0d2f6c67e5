"""Comparison of candidates: quantiles of resampled distances, and simultaneous comparisons."""

import numpy as np
import pytest
from planted_models import PROCESS, TASK, as_model

from mesascope.core import named_key
from mesascope.learners import GradientDescent, Ridge, predictions
from mesascope.probes import draw_problems, identify, prediction_distance
from mesascope.probes._candidates import Judgement
from mesascope.probes._evidence import Evidence


def _judgement(*columns):
    drawn = np.stack(columns, -1)
    return Judgement(drawn.mean(0), drawn)


def test_intervals_are_quantiles_of_the_level():
    low, high = _judgement(np.random.default_rng(0).permutation(1000) / 1000).interval(0.9)
    assert low[0] == pytest.approx(0.05, abs=2e-3) and high[0] == pytest.approx(0.95, abs=2e-3)


def test_one_is_further_only_if_it_is_more_than_twice_as_far_with_confidence():
    base = np.full(1000, 1.0)
    often = np.where(np.arange(1000) < 960, 2.5, 1.5)  # more than twice as far in 96 % of the draws
    assert list(_judgement(base, often).further(0, 0.95)) == [False, True]
    assert list(_judgement(base, often).further(0, 0.99)) == [False, False]
    # the level holds for all comparisons together: with ten others each has to be surer
    assert not _judgement(base, *[often] * 10).further(0, 0.95).any()
    assert not _judgement(base, np.full(1000, 1.99)).further(0, 0.5).any()


@pytest.mark.slow
def test_equally_distant_learners_are_rarely_distinguished():
    """Two learners with errors of equal size and independent signs, 200 times: few are distinguished at level 0.95."""
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(200):
        errors = rng.exponential(size=(100, 2)) ** 2  # heavy-tailed over tasks
        counts = rng.multinomial(100, np.full(100, 0.01), 1000) / 100
        judgement = Judgement(errors.mean(0), counts @ errors)
        told += judgement.further(int(np.argmin(judgement.distance)), 0.95).any()
    assert told <= 10  # the nearest of two is picked from the same tasks, but must be twice as near


@pytest.mark.slow
def test_the_ranking_is_measured_on_the_half_that_was_not_fitted_to():
    answer = identify(as_model(Ridge(0.7)), PROCESS, TASK, tasks=200, learners=["gradient-descent", "ridge"])
    problems = draw_problems(PROCESS, TASK, 200, named_key(0, "identify", "tasks")).part(100, 200)
    f = np.asarray(predictions(Ridge(0.7), problems.x, problems.y, problems.queries))
    for entry in answer.ranking:
        g = np.asarray(predictions(entry.algorithm, problems.x, problems.y, problems.queries))
        weights = Evidence(problems, f).weights
        distance = np.sum(weights * ((f - g) ** 2).sum(-1)) / np.sum(weights * (f**2).sum(-1))
        # the model has noise of 1e-3 on top of the ridge solution
        assert entry.distance == pytest.approx(distance, rel=2e-3, abs=1.5e-6)
        assert entry.interval[0] <= entry.distance <= entry.interval[1]


def test_without_heavy_tasks_the_distance_is_the_metric(sequences):
    f = np.asarray(predictions(GradientDescent(0.3), sequences.x, sequences.y, sequences.queries))
    weights = Evidence(sequences, f / np.linalg.norm(f, axis=(1, 2), keepdims=True)).weights
    np.testing.assert_array_equal(weights, np.broadcast_to(sequences.weights, weights.shape))
    assert prediction_distance(f, 0 * f, sequences).pooled.value == 1
